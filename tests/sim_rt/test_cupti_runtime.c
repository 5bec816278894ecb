/* test_cupti_runtime.c: CUPTI's callbacks and records of the runtime's functions: each call is seen
 * once, and what is called within has its correlation. */
#include <check.h>
#include <cuda_runtime_api.h>
#include <cupti.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 64, BUFFER = 64 << 10 };

#define fine(call) ck_assert_int_eq((int)(call), 0)

static struct {
  CUpti_CallbackDomain domain;
  CUpti_CallbackId cbid;
  CUpti_ApiCallbackSite site;
  uint32_t correlation;
} heard[MOST];
static unsigned heard_count;
static void *first_parameter; /* of the last runtime call */
static cudaError_t answer;    /* of the last runtime call */

static void CUPTIAPI note_call(void *data, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                               const void *what)
{
  const CUpti_CallbackData *call = what;
  (void)data;
  ck_assert_uint_lt(heard_count, MOST);
  heard[heard_count].domain = domain;
  heard[heard_count].cbid = id;
  heard[heard_count].site = call->callbackSite;
  heard[heard_count++].correlation = call->correlationId;
  if (domain != CUPTI_CB_DOMAIN_RUNTIME_API) return;
  first_parameter = call->functionParams ? *(void *const *)call->functionParams : NULL;
  if (call->callbackSite == CUPTI_API_EXIT)
    answer = *(const cudaError_t *)call->functionReturnValue;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static CUpti_ActivityAPI calls[MOST];
static CUpti_ActivityMemset4 fills[MOST];
static unsigned call_count, fill_count;

static void CUPTIAPI give_buffer(uint8_t **buffer, size_t *bytes, size_t *most)
{
  *buffer = aligned_alloc(8, BUFFER);
  *bytes = BUFFER;
  *most = 0;
}

static void CUPTIAPI take_buffer(CUcontext context, uint32_t stream, uint8_t *buffer, size_t bytes,
                                 size_t valid)
{
  CUpti_Activity *r = NULL;
  (void)context, (void)stream, (void)bytes;
  pthread_mutex_lock(&lock);
  while (cuptiActivityGetNextRecord(buffer, valid, &r) == CUPTI_SUCCESS)
    if (r->kind == CUPTI_ACTIVITY_KIND_MEMSET && fill_count < MOST)
      memcpy(&fills[fill_count++], r, sizeof *fills);
    else if (r->kind == CUPTI_ACTIVITY_KIND_RUNTIME && call_count < MOST)
      memcpy(&calls[call_count++], r, sizeof *calls);
  pthread_mutex_unlock(&lock);
  free(buffer);
}

static CUpti_SubscriberHandle client(void)
{
  CUpti_SubscriberHandle s;
  fine(cuptiActivityRegisterCallbacks(give_buffer, take_buffer));
  fine(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_RUNTIME));
  fine(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMSET));
  fine(cuptiSubscribe(&s, note_call, NULL));
  fine(cuptiEnableDomain(1, s, CUPTI_CB_DOMAIN_RUNTIME_API));
  fine(cuptiEnableDomain(1, s, CUPTI_CB_DOMAIN_DRIVER_API));
  return s;
}

START_TEST(a_runtime_call_and_all_within_it_have_one_correlation)
{
  void *p;
  fine(cudaMalloc(&p, 1000));
  CUpti_SubscriberHandle s = client();
  fine(cudaMemset(p, 3, 1000));
  ck_assert_uint_ge(heard_count, 4);
  unsigned last = heard_count - 1;
  ck_assert_int_eq(heard[0].domain, CUPTI_CB_DOMAIN_RUNTIME_API);
  ck_assert_uint_eq(heard[0].cbid, CUPTI_RUNTIME_TRACE_CBID_cudaMemset_v3020);
  ck_assert_int_eq(heard[0].site, CUPTI_API_ENTER);
  ck_assert_int_eq(heard[last].domain, CUPTI_CB_DOMAIN_RUNTIME_API);
  ck_assert_uint_eq(heard[last].cbid, CUPTI_RUNTIME_TRACE_CBID_cudaMemset_v3020);
  ck_assert_int_eq(heard[last].site, CUPTI_API_EXIT);
  ck_assert_ptr_eq(first_parameter, p);
  unsigned fills_seen = 0;
  for (unsigned i = 0; i <= last; i++) {
    ck_assert_uint_eq(heard[i].correlation, heard[0].correlation);
    fills_seen += heard[i].domain == CUPTI_CB_DOMAIN_DRIVER_API &&
                  heard[i].cbid == CUPTI_DRIVER_TRACE_CBID_cuMemsetD8_v2;
  }
  ck_assert_uint_eq(fills_seen, 2);
  fine(cuptiUnsubscribe(s));
  fine(cudaDeviceSynchronize());
  ck_assert_uint_eq(heard_count, last + 1);
  fine(cuptiActivityFlushAll(0));
  ck_assert_uint_eq(fill_count, 1);
  ck_assert_uint_eq(call_count, 2);
  ck_assert_uint_eq(fills[0].correlationId, heard[0].correlation);
  ck_assert_uint_eq(calls[0].correlationId, heard[0].correlation);
  ck_assert_uint_eq(calls[0].cbid, CUPTI_RUNTIME_TRACE_CBID_cudaMemset_v3020);
  ck_assert_uint_ne(calls[1].correlationId, heard[0].correlation);
}
END_TEST

START_TEST(an_answer_is_told_as_it_was_and_as_the_last_error)
{
  void *p;
  fine(cudaMalloc(&p, 1000));
  (void)client();
  ck_assert_int_eq(cudaMalloc(NULL, 10), cudaErrorInvalidValue);
  ck_assert_int_eq(answer, cudaErrorInvalidValue);
  ck_assert_int_eq(cudaGetLastError(), cudaErrorInvalidValue);
  ck_assert_int_eq(heard[heard_count - 1].cbid, CUPTI_RUNTIME_TRACE_CBID_cudaGetLastError_v3020);
}
END_TEST

int main(void)
{
  Suite *suite = suite_create("sim_rt_cupti");
  TCase *c = tcase_create("runtime");
  tcase_set_timeout(c, 0);
  tcase_add_test(c, a_runtime_call_and_all_within_it_have_one_correlation);
  tcase_add_test(c, an_answer_is_told_as_it_was_and_as_the_last_error);
  suite_add_tcase(suite, c);
  unsetenv("WEIR_SIM_CUPTI");
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed != 0;
}
