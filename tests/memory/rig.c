/* rig.c: see rig.h. */
#include "tests/memory/rig.h"

#include <stdlib.h>
#include <string.h>

uint32_t rig_ms;

static uint32_t clock_ms(void)
{
  return rig_ms;
}

void rig_start(rig *r, uint64_t capacity, uint64_t page, const char *conf)
{
  pool_config config = pool_config_default;
  memset(r->s, 0, sizeof r->s);
  fake_init(&r->f, capacity, page);
  ck_assert_int_eq(pool_config_parse(&config, "conf", conf), WEIR_OK);
  ck_assert_int_eq(pool_new(&r->p, &r->f.backend, &config), WEIR_OK);
  r->p->clock = clock_ms;
  r->p->decayed = rig_ms;
}

void rig_stop(rig *r)
{
  ck_assert_msg(pool_free(r->p) == WEIR_OK, "%s", weir_error_message());
  ck_assert(fake_clean(&r->f));
  fake_fini(&r->f);
}

mem_heap *rig_stream(rig *r, int i)
{
  if (!r->s[i]) ck_assert_int_eq(pool_heap(r->p, fake_handle(&r->f, i), &r->s[i]), WEIR_OK);
  return r->s[i];
}

void rig_check(rig *r)
{
  const char *wrong = pool_check(r->p);
  ck_assert_msg(!wrong, "%s", wrong);
}

void *rig_malloc(rig *r, int stream, uint64_t bytes)
{
  void *out = NULL;
  ck_assert_msg(weir_tcache_malloc(rig_stream(r, stream), bytes, &out) == WEIR_OK, "%s",
                weir_error_message());
  rig_check(r);
  return out;
}

void rig_free(rig *r, void *ptr)
{
  ck_assert_msg(weir_tcache_free(ptr) == WEIR_OK, "%s", weir_error_message());
  rig_check(r);
}

int64_t rig_stat(rig *r, size_t offset)
{
  weir_memory_stats all;
  pthread_mutex_lock(&r->p->lock);
  pool_stats(r->p, &all);
  pthread_mutex_unlock(&r->p->lock);
  return *(int64_t *)((char *)&all + offset);
}

uint64_t rig_random(uint64_t *state)
{
  uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return z ^ z >> 31;
}

int rig_run(Suite *suite)
{
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed != 0;
}
