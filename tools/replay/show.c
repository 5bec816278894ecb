/* show.c: results as a table, as JSON and as a picture. */
#include <inttypes.h>
#include "tools/replay/fit.h"

const char *rp_bytes_text(char text[32], uint64_t bytes)
{
  static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double n = (double)bytes;
  size_t unit = 0;
  while (n >= 1024 && unit < 4) {
    n /= 1024;
    unit++;
  }
  (void)snprintf(text, 32, unit ? "%.1f %s" : "%.0f %s", n, units[unit]);
  return text;
}

/* What is about the list, and no policy's. */
static void show_list_facts(FILE *out, const rp_result *r)
{
  const rp_ops *ops = r->ops;
  char text[32];
  if (ops->held_count)
    (void)fprintf(
        out, "From before the record began: %zu block%s, %s; held here from the start on.\n",
        ops->held_count, ops->held_count == 1 ? "" : "s", rp_bytes_text(text, ops->held_bytes));
  if (ops->requests)
    (void)fprintf(
        out, "Failed when it was recorded: %" PRIu64 " request%s, the largest of %s; %s.\n",
        ops->requests, ops->requests == 1 ? "" : "s", rp_bytes_text(text, ops->request_most),
        r->requests_tried ? "run here, too, and freed at once"
                          : "not in the table, which has no limit without --capacity");
  if (ops->unmatched)
    (void)fprintf(out, "Left out: %" PRIu64 " free%s of blocks whose allocation is not recorded.\n",
                  ops->unmatched, ops->unmatched == 1 ? "" : "s");
  if (ops->replaced)
    (void)fprintf(out, "Put in: %" PRIu64 " free%s, each before an address was allocated again.\n",
                  ops->replaced, ops->replaced == 1 ? "" : "s");
}

static weir_status check_written(FILE *out)
{
  return fflush(out) || ferror(out) ? weir_fail(WEIR_EIO, "cannot write the result") : WEIR_OK;
}

weir_status rp_show_text(FILE *out, const rp_result *results, size_t count)
{
  uint64_t failed = 0;
  (void)fprintf(out, "%-20s %11s %13s %7s %13s %9s %9s %9s\n", "policy", "peak live",
                "peak reserved", "ratio", "segment calls", "syncs", "ns/op", "failed");
  for (size_t i = 0; i < count; i++) {
    const rp_result *r = &results[i];
    char live[32], reserved[32];
    (void)fprintf(out, "%-20s %11s %13s %7.3f %13" PRIu64 " %9" PRIu64 " %9.1f %9" PRIu64 "\n",
                  r->policy->name, rp_bytes_text(live, r->peak_live),
                  rp_bytes_text(reserved, r->peak_reserved), rp_ratio(r), r->segment_calls,
                  r->syncs, r->ns_per_op, r->failed);
    failed += r->failed;
  }
  if (failed)
    (void)fprintf(out, "failed: allocations that did not fit; they and their frees are left out\n");
  if (count) show_list_facts(out, &results[0]);
  return check_written(out);
}

static void write_fit_json(FILE *out, const rp_fit *f)
{
  (void)fprintf(out, ", \"capacity\": %" PRIu64 ", \"fits\": %s, \"needs\": %" PRIu64, f->capacity,
                f->fits ? "true" : "false", f->needs);
  if (f->fits) return;
  (void)fprintf(out,
                ", \"first_failure\": {\"allocation\": %" PRIu64 ", \"at_ns\": %" PRIu64
                ", \"bytes\": %" PRIu64 ", \"live_bytes\": %" PRIu64 ", \"largest_piece\": %" PRIu64
                ", \"failed_when_recorded\": %s}",
                f->number, f->at_ns, f->bytes, f->live, f->largest, f->request ? "true" : "false");
}

static void write_list_json(FILE *out, const rp_ops *ops)
{
  (void)fprintf(out,
                ", \"held_before\": %zu, \"held_before_bytes\": %" PRIu64
                ", \"failed_requests\": %" PRIu64 ", \"largest_failed_request\": %" PRIu64
                ", \"frees_left_out\": %" PRIu64 ", \"frees_put_in\": %" PRIu64,
                ops->held_count, ops->held_bytes, ops->requests, ops->request_most, ops->unmatched,
                ops->replaced);
}

static void write_result_json(FILE *out, const rp_result *r)
{
  (void)fprintf(out,
                "{\"policy\": \"%s\", \"peak_live\": %" PRIu64 ", \"peak_reserved\": %" PRIu64
                ", \"ratio\": %.6f, \"segment_calls\": %" PRIu64 ", \"syncs\": %" PRIu64
                ", \"ns_per_op\": %.1f, \"operations\": %" PRIu64 ", \"failed\": %" PRIu64
                ", \"stream_waits\": %" PRIu64 ", \"events\": %" PRIu64,
                r->policy->name, r->peak_live, r->peak_reserved, rp_ratio(r), r->segment_calls,
                r->syncs, r->ns_per_op, r->operations, r->failed, r->stream_waits, r->events);
}

weir_status rp_show_json(FILE *out, const rp_result *results, size_t count)
{
  if (count != 1) (void)fputs("[", out);
  for (size_t i = 0; i < count; i++) {
    if (i) (void)fputs(",\n ", out);
    write_result_json(out, &results[i]);
    write_list_json(out, results[i].ops);
    if (results[i].fit) write_fit_json(out, results[i].fit);
    (void)fputs("}", out);
  }
  (void)fputs(count != 1 ? "]\n" : "\n", out);
  return check_written(out);
}

/* ---- the picture ----------------------------------------------------------------------------- */

enum { LEFT = 90, TOP = 30, WIDTH = 2 * RP_COLUMNS, HEIGHT = 360, FOOT = 60 };

static double y_of(uint64_t bytes, uint64_t most)
{
  return TOP + HEIGHT - (most ? (double)bytes / (double)most * HEIGHT : 0);
}

static void write_axes(FILE *out, const rp_ops *ops, uint64_t most)
{
  uint64_t end = ops->count ? ops->op[ops->count - 1].time : 0;
  for (int i = 0; i <= 4; i++) {
    char text[32];
    double y = y_of(most / 4 * (uint64_t)i, most);
    (void)fprintf(out,
                  "<line x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\" stroke=\"#ddd\"/>\n"
                  "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n",
                  LEFT, y, LEFT + WIDTH, y, LEFT - 6, y + 4,
                  rp_bytes_text(text, most / 4 * (uint64_t)i));
  }
  (void)fprintf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">", LEFT + WIDTH,
                TOP + HEIGHT + 18);
  if (end)
    (void)fprintf(out, "%.3f s</text>\n", (double)end / 1e9);
  else
    (void)fprintf(out, "%zu operations</text>\n", ops->count);
}

static void live_area(FILE *out, const rp_result *r, uint64_t most)
{
  (void)fprintf(out, "<path fill=\"#9ecae1\" d=\"M%d %d", LEFT, TOP + HEIGHT);
  for (unsigned i = 0; i < RP_COLUMNS; i++)
    (void)fprintf(out, "V%.1fh2", y_of(r->column[i].live, most));
  (void)fprintf(out, "V%dZ\"/>\n", TOP + HEIGHT);
}

static void reserved_line(FILE *out, const rp_result *r, uint64_t most, const char *color)
{
  (void)fprintf(out, "<path fill=\"none\" stroke=\"%s\" stroke-width=\"1.5\" d=\"M%d %d", color,
                LEFT, TOP + HEIGHT);
  for (unsigned i = 0; i < RP_COLUMNS; i++)
    (void)fprintf(out, "V%.1fh2", y_of(r->column[i].reserved, most));
  (void)fputs("\"/>\n", out);
}

weir_status rp_show_svg(FILE *out, const rp_ops *ops, const rp_result *results, size_t count)
{
  static const char *const colors[] = {"#d62728", "#8c564b", "#2ca02c",
                                       "#9467bd", "#ff7f0e", "#1f77b4"};
  uint64_t most = 0;
  for (size_t i = 0; i < count; i++) {
    if (results[i].peak_reserved > most) most = results[i].peak_reserved;
    if (results[i].peak_live > most) most = results[i].peak_live;
  }
  (void)fprintf(out,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" "
                "font-family=\"sans-serif\" font-size=\"12\">\n"
                "<title>Reserved against live memory over time</title>\n"
                "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
                LEFT + (int)WIDTH + 30, TOP + HEIGHT + FOOT);
  write_axes(out, ops, most);
  if (count) live_area(out, &results[0], most);
  (void)fprintf(
      out, "<text x=\"%d\" y=\"%d\"><tspan fill=\"#4292c6\">live</tspan>, reserved by</text>\n",
      LEFT, TOP + HEIGHT + 40);
  for (size_t i = 0; i < count; i++) {
    const char *color = colors[i % (sizeof colors / sizeof *colors)];
    reserved_line(out, &results[i], most, color);
    (void)fprintf(out, "<text x=\"%d\" y=\"%d\" fill=\"%s\">%s</text>\n", LEFT + 120 + 140 * (int)i,
                  TOP + HEIGHT + 40, color, results[i].policy->name);
  }
  (void)fputs("</svg>\n", out);
  return check_written(out);
}
