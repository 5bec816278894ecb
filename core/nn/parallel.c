/* parallel.c: data parallelism: replicas, scattering, a thread a device, gathering.
 *
 * Order on the devices is that of the calling thread's current streams: it is with them that the
 * copies to a device are made, that the thread of that device calculates, and that its result is
 * fetched; copies between two devices are ordered by weir_copy_(). So nothing here waits for a
 * device, and memory that is released goes back in the order of the stream it was used in.
 *
 * Where the module requires gradients, a replica's parameters are recorded as copies of its own:
 * going back, what each replica finds is brought to the module's parameters and added up there. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/nn/log.h"
#include "core/nn/module.h"
#include "core/tensor/announce.h"
#include "core/tensor/record.h"
#include "core/tensor/autocast.h"

/* ---- replicas -------------------------------------------------------------------------------- */

/* Gives the copy of a module its tensors; `moved` has those that other modules have, too. */
static weir_status fill_replica(weir_module *copy, const weir_module *m, weir_device device,
                                pointer_memo *moved)
{
  weir_options there = {.device = device, .non_blocking = true};
  weir_status st = WEIR_OK;
  for (size_t i = 0; !st && i < m->slots; i++) {
    weir_tensor *t = m->slot[i].t;
    void *before = t ? pointer_memo_get(moved, t) : NULL;
    if (before)
      copy->slot[i].t = weir_tensor_retain(before);
    else if (t && !(st = weir_to(&copy->slot[i].t, t, &there)))
      st = pointer_memo_put(moved, t, copy->slot[i].t);
    if (!before && !st && copy->slot[i].t != t)
      (void)weir_tensor_set_name(copy->slot[i].t, weir_tensor_name(t));
  }
  return st;
}

/* Copies of the walk's modules, in its order, without tensors and children. */
static weir_status hollow_all(weir_module **made, const module_walk *w, pointer_memo *copies)
{
  weir_status st = WEIR_OK;
  for (size_t i = 0; !st && i < w->count; i++) {
    st = module_skeleton(&made[i], w->item[i].module);
    if (!st) st = pointer_memo_put(copies, w->item[i].module, made[i]);
  }
  return st;
}

static weir_status replicate(weir_module **out, const module_walk *w, weir_device device)
{
  pointer_memo copies = {0}, moved = {0};
  weir_module **made = calloc(w->count + 1, sizeof(weir_module *));
  if (!made) return fail_memory("a replica");
  weir_status st = hollow_all(made, w, &copies);
  for (size_t i = 0; !st && i < w->count; i++) {
    const weir_module *m = w->item[i].module;
    for (size_t c = 0; c < m->children; c++)
      made[i]->child[c].m = weir_module_retain(pointer_memo_get(&copies, m->child[c].m));
    st = fill_replica(made[i], m, device, &moved);
  }
  if (!st) *out = weir_module_retain(made[0]);
  for (size_t i = 0; i < w->count; i++)
    weir_module_release(made[i]);
  hash_map_free(&copies);
  hash_map_free(&moved);
  free(made);
  return st;
}

weir_status weir_replicate(weir_module **out, weir_module *m, const weir_device *devices, int count)
{
  WEIR_REQUIRE(out, m);
  if (count) WEIR_REQUIRE(devices);
  module_walk w;
  memset(out, 0, (size_t)count * sizeof(weir_module *));
  weir_status st = module_walk_list(&w, m, WALK_MODULES | WALK_MODULES_ONCE);
  for (int i = 0; !st && i < count; i++)
    st = replicate(&out[i], &w, devices[i]);
  for (int i = 0; st && i < count; i++)
    weir_module_drop(&out[i]);
  module_walk_free(&w);
  return st;
}

/* ---- scattering and gathering ---------------------------------------------------------------- */

weir_status weir_parallel_scatter(weir_tensor **out, int *parts, const weir_tensor *t,
                                  const weir_device *devices, int count)
{
  WEIR_REQUIRE(out, parts, t);
  if (count) WEIR_REQUIRE(devices);
  memset(out, 0, (size_t)count * sizeof(weir_tensor *));
  *parts = 0;
  if (!weir_tensor_dim(t)) return fail_invalid("chunk expects at least a 1-dimensional tensor");
  int chunks = 0;
  weir_status st = weir_chunk(out, &chunks, t, count, 0);
  for (int i = 0; !st && i < chunks; i++) {
    weir_options there = {.device = devices[i], .non_blocking = true};
    weir_tensor *chunk = out[i];
    st = weir_to(&out[i], chunk, &there);
    weir_tensor_release(chunk);
  }
  for (int i = 0; st && i < chunks; i++)
    weir_tensor_drop(&out[i]);
  if (!st) *parts = chunks;
  return st;
}

/* Of the result, with `rows` in dimension 0. */
static weir_status gathered_shape(weir_shape *out, weir_tensor *const *tensors, int count)
{
  weir_shape first = weir_tensor_shape(tensors[0]);
  if (!first.count) first = weir_shape(1);
  *out = first;
  for (int i = 1; i < count; i++) {
    weir_shape s = weir_tensor_shape(tensors[i]), wanted = first;
    if (!s.count) s = weir_shape(1);
    wanted.size[0] = s.size[0];
    if (weir_tensor_dtype(tensors[i]) != weir_tensor_dtype(tensors[0]))
      return fail_invalid("Input tensor at index %d has dtype weir.%s, but expected weir.%s", i,
                          weir_dtype_name(weir_tensor_dtype(tensors[i])),
                          weir_dtype_name(weir_tensor_dtype(tensors[0])));
    if (s.count != first.count ||
        memcmp(s.size, wanted.size, (size_t)s.count * sizeof *s.size) != 0) {
      text_buffer has, expected;
      return fail_invalid("Input tensor at index %d has invalid shape %s, but expected %s", i,
                          shape_format(&has, s), shape_format(&expected, first));
    }
    out->size[0] += s.size[0];
  }
  return WEIR_OK;
}

/* Rows `at` and on of `all` become t's. */
static weir_status put_rows(weir_tensor *all, int64_t *at, const weir_tensor *t)
{
  weir_tensor *part;
  int64_t rows = weir_tensor_dim(t) ? weir_tensor_size(t, 0) : 1;
  weir_status st = weir_narrow(&part, all, 0, *at, rows);
  if (!st) st = weir_copy_(part, t, weir_tensor_is_cuda(all));
  weir_tensor_release(part);
  *at += rows;
  return st;
}

/* The same of what is recorded: elements in place would be changes of shared memory. */
static weir_status join_recorded(weir_tensor **out, weir_tensor *const *tensors, int count,
                                 weir_device device)
{
  weir_options there = {.device = device, .non_blocking = device.type == WEIR_DEVICE_CUDA};
  weir_tensor **part = calloc((size_t)count, sizeof(weir_tensor *));
  if (!part) return weir_fail(WEIR_ENOMEM, "no host memory to gather %d tensors", count);
  weir_status st = WEIR_OK;
  for (int i = 0; !st && i < count; i++) {
    WEIR_TENSOR moved = NULL;
    st = weir_to(&moved, tensors[i], &there);
    if (!st && weir_tensor_dim(moved))
      part[i] = weir_tensor_retain(moved);
    else if (!st)
      st = weir_unsqueeze(&part[i], moved, 0);
  }
  if (!st) st = weir_cat(out, (const weir_tensor *const *)part, count, 0);
  for (int i = 0; i < count; i++)
    weir_tensor_release(part[i]);
  free(part);
  return st;
}

weir_status weir_parallel_gather(weir_tensor **out, weir_tensor *const *tensors, int count,
                                 weir_device device)
{
  WEIR_REQUIRE_OUT(out);
  if (count) WEIR_REQUIRE(tensors);
  weir_shape shape;
  if (count < 1) return fail_invalid("nothing is to be gathered");
  TRY(gathered_shape(&shape, tensors, count));
  if (!weir_tensor_dim(tensors[0]))
    log_message(WEIR_LOG_WARNING,
                "Was asked to gather along dimension 0, but all input tensors were "
                "scalars; will instead unsqueeze and return a vector.");
  if (recorded_any((const weir_tensor *const *)tensors, count))
    return join_recorded(out, tensors, count, device);
  weir_options o = {.dtype = weir_tensor_dtype(tensors[0]), .device = device};
  weir_tensor *all;
  int64_t at = 0;
  weir_status st = weir_empty(&all, shape, &o);
  for (int i = 0; !st && i < count; i++)
    st = put_rows(all, &at, tensors[i]);
  if (st)
    weir_tensor_release(all);
  else
    *out = all;
  return st;
}

/* ---- a thread a device ----------------------------------------------------------------------- */

typedef struct job {
  weir_module *module;    /* borrowed, as all here */
  weir_tensor *const *in; /* `each` of them */
  int each;
  weir_stream *stream; /* the caller's current one there; NULL: the cpu */
  weir_tensor *out;    /* new */
  weir_status st;
  char text[512];          /* the sentence of st */
  bool unrecorded;         /* as the caller's thread has it */
  autocast_state autocast; /* the same */
  const char *under; /* where in its modules the caller is, for its thread; NULL: this is it */
  pthread_t thread;
  bool started;
} job;

static void *run_job(void *argument)
{
  job *j = argument;
  weir_guard guard = {.device = -1, .of = {-1, -1}};
  bool was = weir_set_grad_enabled(!j->unrecorded);
  autocast_state before = autocast_adopt(&j->autocast);
  if (j->under) weir_module_path_push(j->under);
  j->st = j->stream ? weir_stream_enter(&guard, j->stream) : WEIR_OK;
  if (!j->st) j->st = weir_module_call_many(&j->out, j->module, j->in, j->each);
  weir_guard_leave(&guard);
  if (j->under) weir_module_path_pop();
  autocast_back(&before);
  (void)weir_set_grad_enabled(was);
  if (j->st) (void)snprintf(j->text, sizeof j->text, "%s", weir_error_message());
  return NULL;
}

/* All at once, the first in this thread; one whose thread cannot be had comes in this thread,
 * too. */
static void run_all(job *jobs, int count)
{
  char path[WEIR_TENSOR_TEXT];
  module_path_text(path);
  for (int i = 1; i < count; i++) {
    jobs[i].under = path;
    jobs[i].started = !pthread_create(&jobs[i].thread, NULL, run_job, &jobs[i]);
    if (!jobs[i].started) jobs[i].under = NULL;
  }
  for (int i = 0; i < count; i++)
    if (!jobs[i].started) (void)run_job(&jobs[i]);
  for (int i = 1; i < count; i++)
    if (jobs[i].started) (void)pthread_join(jobs[i].thread, NULL);
}

/* The lowest failure, worded again in this thread; else everybody's result. */
static weir_status collect_results(weir_tensor **out, job *jobs, int count)
{
  const job *failed = NULL;
  for (int i = count - 1; i >= 0; i--)
    if (jobs[i].st) failed = &jobs[i];
  for (int i = 0; i < count; i++)
    if (failed)
      weir_tensor_release(jobs[i].out);
    else
      out[i] = jobs[i].out;
  return failed ? weir_fail(failed->st, "%s", failed->text) : WEIR_OK;
}

weir_status weir_parallel_apply(weir_tensor **out, weir_module *const *modules,
                                weir_tensor *const *inputs, int each, const weir_device *devices,
                                int count)
{
  WEIR_REQUIRE(out);
  if (count) WEIR_REQUIRE(modules, inputs, devices);
  memset(out, 0, (size_t)count * sizeof(weir_tensor *));
  job *jobs = calloc((size_t)count + 1, sizeof *jobs);
  if (!jobs) return fail_memory("%d replicas", count);
  weir_status st = WEIR_OK;
  for (int i = 0; !st && i < count; i++) {
    jobs[i] = (job){.module = modules[i],
                    .in = inputs + (ptrdiff_t)i * each,
                    .each = each,
                    .unrecorded = thread_grad_off,
                    .autocast = thread_autocast};
    if (devices[i].type == WEIR_DEVICE_CUDA) st = weir_current_stream(&jobs[i].stream, devices[i]);
  }
  if (!st) {
    run_all(jobs, count);
    st = collect_results(out, jobs, count);
  }
  free(jobs);
  return st;
}

/* ---- the module ------------------------------------------------------------------------------ */

typedef struct plan {
  int count; /* devices; 0: there is no CUDA */
  weir_device output;
  weir_device device[]; /* `count` of them, and one of none */
} plan;

typedef struct part {
  weir_module **replica;
  weir_tensor **in, **out; /* in: of each replica `each`, one after the other */
  int count, each;
} part;

static weir_status on_device(void *user, const char *path, weir_tensor *t)
{
  weir_device d = weir_tensor_device(t), wanted = *(weir_device *)user;
  (void)path;
  if (weir_device_equal(d, wanted)) return WEIR_OK;
  return fail_invalid("module must have its parameters and buffers on device %s (device_ids[0]) "
                      "but found one of them on device: %s",
                      weir_device_name(wanted), weir_device_name(d));
}

/* Scatters each of the inputs; p->count becomes how many devices have a part of all of them. */
static weir_status scatter_inputs(part *p, const plan *plan, weir_tensor *const *in)
{
  weir_tensor **column = calloc((size_t)plan->count, sizeof(weir_tensor *));
  if (!column) return fail_memory("%d replicas", plan->count);
  weir_status st = WEIR_OK;
  int parts;
  p->count = plan->count;
  for (int k = 0; !st && k < p->each; k++) {
    if ((st = weir_parallel_scatter(column, &parts, in[k], plan->device, plan->count))) break;
    for (int i = 0; i < parts; i++)
      p->in[i * p->each + k] = column[i];
    if (parts < p->count) p->count = parts;
  }
  free(column);
  return st;
}

static void drop_part(part *p, int devices)
{
  for (int i = 0; p->replica && i < devices; i++)
    weir_module_release(p->replica[i]);
  for (int i = 0; p->in && i < devices * p->each; i++)
    weir_tensor_release(p->in[i]);
  for (int i = 0; p->out && i < devices; i++)
    weir_tensor_release(p->out[i]);
  free(p->replica);
  free(p->in);
  free(p->out);
}

static weir_status on_many(weir_tensor **out, weir_module *m, const plan *plan, part *p,
                           weir_tensor *const *in)
{
  size_t n = (size_t)plan->count;
  p->replica = calloc(n, sizeof(weir_module *));
  p->in = calloc(n * (size_t)p->each + 1, sizeof(weir_tensor *));
  p->out = calloc(n, sizeof(weir_tensor *));
  if (!p->replica || !p->in || !p->out) return fail_memory("%zu replicas", n);
  weir_status st = scatter_inputs(p, plan, in);
  if (!st) p->replica[0] = weir_module_retain(m);
  if (!st) st = weir_replicate(p->replica + 1, m, plan->device + 1, p->count - 1);
  if (!st) st = weir_parallel_apply(p->out, p->replica, p->in, p->each, plan->device, p->count);
  return st ? st : weir_parallel_gather(out, p->out, p->count, plan->output);
}

/* With one device: the inputs are brought there. */
static weir_status on_one(weir_tensor **out, weir_module *m, const plan *plan, part *p,
                          weir_tensor *const *in)
{
  p->in = calloc((size_t)p->each + 1, sizeof(weir_tensor *));
  p->out = calloc(1, sizeof(weir_tensor *));
  if (!p->in || !p->out) return fail_memory("a replica");
  weir_options there = {.device = plan->device[0], .non_blocking = true};
  weir_status st = WEIR_OK;
  for (int k = 0; !st && k < p->each; k++)
    st = weir_to(&p->in[k], in[k], &there);
  if (!st) st = weir_parallel_apply(out, &m, p->in, p->each, plan->device, 1);
  return st;
}

static weir_status parallel_forward(weir_tensor **out, weir_module *self, weir_tensor *const *in,
                                    int count)
{
  const plan *plan = self->data;
  weir_module *m = self->child[0].m;
  if (!plan->count) return weir_module_call_many(out, m, in, count);
  if (!count) return fail_invalid("a DataParallel needs at least one tensor to scatter");
  weir_status st =
      weir_module_visit(m, WEIR_PARAMETERS | WEIR_BUFFERS, on_device, (void *)&plan->device[0]);
  if (st) return st;
  part p = {.each = count};
  st = plan->count == 1 ? on_one(out, m, plan, &p, in) : on_many(out, m, plan, &p, in);
  drop_part(&p, plan->count);
  return st;
}

/* p's devices are those asked for, or the first. Errors: EINVAL: one that is not there. */
static weir_status choose_devices(plan *p, const weir_parallel_options *o, int there)
{
  for (int i = 0; i < p->count; i++) {
    int id = o->device_ids ? o->device_ids[i] : i;
    p->device[i] = WEIR_CUDA_AT(id);
    if (id < 0 || id >= there)
      return fail_invalid("invalid device ordinal: device_ids[%d] is cuda:%d, there %s %d", i, id,
                          there == 1 ? "is" : "are", there);
  }
  p->output = o->output.type || !p->count ? o->output : p->device[0];
  return WEIR_OK;
}

/* The devices asked for, or all there are; none where there is no CUDA. */
static weir_status make_replica_plan(plan **out, const weir_parallel_options *o)
{
  int there = 0;
  weir_status st = weir_cuda_is_available() ? weir_cuda_device_count(&there) : WEIR_OK;
  int count = there && o->device_ids ? o->devices : there;
  *out = NULL;
  if (st) return st;
  if (count < 0) return fail_invalid("%d device_ids", count);
  plan *p = calloc(1, sizeof *p + ((size_t)count + 1) * sizeof p->device[0]);
  if (!p) return fail_memory("%d devices", count);
  p->count = count;
  st = choose_devices(p, o, there);
  if (st)
    free(p);
  else
    *out = p;
  return st;
}

weir_status weir_data_parallel(weir_module **out, weir_module *m,
                               const weir_parallel_options *options)
{
  WEIR_REQUIRE_OUT(out, m);
  static const weir_module_class kind = {
      .name = "DataParallel", .forward = parallel_forward, .destroy = free};
  static const weir_parallel_options none = {0};
  plan *p;
  weir_module *made;
  weir_status st = make_replica_plan(&p, options ? options : &none);
  if (!p) return st;
  weir_options there = {.device = p->device[0]};
  bool move = p->count == 1;
  st = weir_module_new(&made, &kind, p);
  if (!st) st = weir_module_add(made, "module", weir_module_retain(m));
  if (!st && move) st = weir_module_to(m, &there);
  if (st)
    weir_module_release(made);
  else
    *out = made;
  return st;
}
