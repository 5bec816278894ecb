/* test_texture.c: texture and surface objects: made, asked, and read as a twin reads them. */
#include "sim.h"

#include <math.h>
#include "cuda/sim/weir_texture.h"

enum { INTEGER = CU_TRSF_READ_AS_INTEGER, NORMALIZED = CU_TRSF_NORMALIZED_COORDINATES };

static CUarray array_of(CUarray_format format, unsigned channels, size_t width, size_t height,
                        size_t depth, unsigned flags)
{
  CUDA_ARRAY3D_DESCRIPTOR shape = {width, height, depth, format, channels, flags};
  CUarray a;
  ok(cuArray3DCreate_v2(&a, &shape));
  return a;
}

/* Rows of `bytes` each into an array, from the host. */
static void fill_array(CUarray a, const void *from, size_t bytes, size_t rows, size_t planes)
{
  CUDA_MEMCPY3D c = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                     .srcHost = from,
                     .srcPitch = bytes,
                     .srcHeight = rows,
                     .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                     .dstArray = a,
                     .WidthInBytes = bytes,
                     .Height = rows,
                     .Depth = planes};
  ok(cuMemcpy3D_v2(&c));
}

static CUDA_RESOURCE_DESC on_array(CUarray a)
{
  CUDA_RESOURCE_DESC r = {.resType = CU_RESOURCE_TYPE_ARRAY};
  r.res.array.hArray = a;
  return r;
}

static CUtexObject texture(const CUDA_RESOURCE_DESC *r, CUaddress_mode mode, CUfilter_mode filter,
                           unsigned flags)
{
  CUDA_TEXTURE_DESC how = {.addressMode = {mode, mode, mode}, .filterMode = filter, .flags = flags};
  CUtexObject t = 0;
  ok(cuTexObjectCreate(&t, r, &how, NULL));
  ck_assert_uint_ne(t, 0);
  return t;
}

static float sample_texture_at(CUtexObject t, unsigned ways, float x, float y, float z, int layer)
{
  const float place[3] = {x, y, z};
  float out[4];
  weir_texture_sample(t, ways, place, layer, out);
  return out[0];
}

#define same(a, b) ck_assert_float_eq_tol((a), (b), 1e-6f)

START_TEST(linear_memory_is_fetched_by_number_and_is_zero_outside)
{
  const float values[5] = {1, 2, 3, 4, 5};
  CUdeviceptr p = device_bytes(4096);
  ok(cuMemcpyHtoD_v2(p, values, sizeof values));
  CUDA_RESOURCE_DESC r = {.resType = CU_RESOURCE_TYPE_LINEAR};
  r.res.linear.devPtr = p;
  r.res.linear.format = CU_AD_FORMAT_FLOAT;
  r.res.linear.numChannels = 1;
  r.res.linear.sizeInBytes = sizeof values;
  CUtexObject t = texture(&r, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_LINEAR, NORMALIZED);
  float out[4];
  weir_texture_fetch(t, 4, out);
  same(out[0], 5);
  same(out[1], 0);
  weir_texture_fetch(t, 5, out);
  same(out[0], 0);
  weir_texture_fetch(t, -1, out);
  same(out[0], 0);
  uint32_t raw = 0;
  weir_texture_fetch_raw(t, 1, &raw, sizeof raw);
  ck_assert_mem_eq(&raw, &values[1], 4);
  ok(cuTexObjectDestroy(t));
  fails(cuTexObjectDestroy(t), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

/* 4 texels in a row: 10, 20, 30, 40. What is asked: x and the value, in each address mode. */
START_TEST(coordinates_outside_follow_the_address_mode)
{
  static const float row[4] = {10, 20, 30, 40};
  static const struct {
    CUaddress_mode mode;
    float x, value;
  } normalized[] = {{CU_TR_ADDRESS_MODE_CLAMP, -0.6f, 10},  {CU_TR_ADDRESS_MODE_CLAMP, 1.6f, 40},
                    {CU_TR_ADDRESS_MODE_BORDER, -0.1f, 7},  {CU_TR_ADDRESS_MODE_BORDER, 0.1f, 10},
                    {CU_TR_ADDRESS_MODE_WRAP, 1.3f, 20},    {CU_TR_ADDRESS_MODE_WRAP, -0.1f, 40},
                    {CU_TR_ADDRESS_MODE_WRAP, 7.6f, 30},    {CU_TR_ADDRESS_MODE_MIRROR, 1.1f, 40},
                    {CU_TR_ADDRESS_MODE_MIRROR, -0.3f, 20}, {CU_TR_ADDRESS_MODE_MIRROR, 2.3f, 20}};
  CUarray a = array_of(CU_AD_FORMAT_FLOAT, 1, 4, 0, 0, 0);
  fill_array(a, row, sizeof row, 1, 1);
  CUDA_RESOURCE_DESC r = on_array(a);
  for (size_t i = 0; i < sizeof normalized / sizeof *normalized; i++) {
    CUaddress_mode mode = normalized[i].mode;
    CUDA_TEXTURE_DESC how = {
        .addressMode = {mode, mode, mode}, .flags = NORMALIZED, .borderColor = {7, 0, 0, 0}};
    CUtexObject t;
    ok(cuTexObjectCreate(&t, &r, &how, NULL));
    same(sample_texture_at(t, 1, normalized[i].x, 0, 0, 0), normalized[i].value);
  }
  CUtexObject t = texture(&r, CU_TR_ADDRESS_MODE_WRAP, CU_TR_FILTER_MODE_POINT, 0);
  same(sample_texture_at(t, 1, 5.0f, 0, 0, 0), 40); /* not normalised: wrap becomes clamp */
  same(sample_texture_at(t, 1, 1.99f, 0, 0, 0), 20);
  same(sample_texture_at(t, 1, NAN, 0, 0, 0), 10);
  same(sample_texture_at(t, 1, 1e30f, 0, 0, 0), 40);
}
END_TEST

START_TEST(linear_filtering_is_between_centres_in_steps_of_a_256th)
{
  static const float plane[2][2] = {{0, 100}, {200, 300}};
  CUarray a = array_of(CU_AD_FORMAT_FLOAT, 1, 2, 2, 0, 0);
  fill_array(a, plane, 8, 2, 1);
  CUDA_RESOURCE_DESC r = on_array(a);
  CUtexObject t = texture(&r, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_LINEAR, 0);
  same(sample_texture_at(t, 2, 0.5f, 0.5f, 0, 0), 0);
  same(sample_texture_at(t, 2, 1.5f, 1.5f, 0, 0), 300);
  same(sample_texture_at(t, 2, 1.0f, 1.0f, 0, 0), 150);
  same(sample_texture_at(t, 2, 0.75f, 0.5f, 0, 0), 25);
  same(sample_texture_at(t, 2, 0.5f + 1.0f / 1024, 0.5f, 0, 0), 0); /* less than half a step */
  same(sample_texture_at(t, 2, -9, 9, 0, 0), 200);
  t = texture(&r, CU_TR_ADDRESS_MODE_BORDER, CU_TR_FILTER_MODE_LINEAR, 0);
  same(sample_texture_at(t, 2, 2.0f, 1.5f, 0, 0), 150); /* half of it is border: 0 */
  t = texture(&r, CU_TR_ADDRESS_MODE_WRAP, CU_TR_FILTER_MODE_LINEAR, NORMALIZED);
  same(sample_texture_at(t, 2, 0.0f, 0.25f, 0, 0), 50);
  same(sample_texture_at(t, 2, 0.5f, 0.5f, 0, 0), 150);
}
END_TEST

START_TEST(integers_are_promoted_or_read_as_they_are)
{
  static const unsigned char bytes[4] = {255, 0, 51, 128};
  static const int16_t shorts[2] = {-32768, 32767};
  static const uint16_t halves[4] = {0x3c00, 0xc000, 0x0001, 0x7c00};
  CUarray a = array_of(CU_AD_FORMAT_UNSIGNED_INT8, 4, 1, 1, 0, 0);
  fill_array(a, bytes, 4, 1, 1);
  CUDA_RESOURCE_DESC r = on_array(a);
  const float origin[3] = {0, 0, 0};
  float out[4];
  weir_texture_sample(texture(&r, 1, 0, 0), 2, origin, 0, out);
  same(out[0], 1);
  same(out[2], 0.2f);
  unsigned char raw[4];
  CUtexObject plain = texture(&r, 1, 0, INTEGER);
  weir_texture_raw(plain, 2, origin, 0, raw, sizeof raw);
  ck_assert_mem_eq(raw, bytes, 4);
  CUDA_TEXTURE_DESC filtered = {.filterMode = CU_TR_FILTER_MODE_LINEAR, .flags = INTEGER};
  fails(cuTexObjectCreate(&plain, &r, &filtered, NULL), CUDA_ERROR_INVALID_VALUE);
  a = array_of(CU_AD_FORMAT_SIGNED_INT16, 2, 1, 1, 0, 0);
  fill_array(a, shorts, 4, 1, 1);
  r = on_array(a);
  weir_texture_sample(texture(&r, 1, 0, 0), 2, origin, 0, out);
  same(out[0], -1);
  same(out[1], 1);
  a = array_of(CU_AD_FORMAT_HALF, 4, 1, 1, 0, 0);
  fill_array(a, halves, 8, 1, 1);
  r = on_array(a);
  weir_texture_sample(texture(&r, 1, 0, 0), 2, origin, 0, out);
  same(out[0], 1);
  same(out[1], -2);
  ck_assert_float_eq(out[2], 5.9604644775390625e-8f);
  ck_assert(isinf(out[3]));
}
END_TEST

START_TEST(pitched_memory_layers_slices_and_faces_are_found)
{
  float values[6][2][2];
  for (int i = 0; i < 24; i++)
    (&values[0][0][0])[i] = (float)i;
  CUdeviceptr p;
  size_t pitch;
  ok(cuMemAllocPitch_v2(&p, &pitch, 8, 2, 4));
  ok(cuMemcpyHtoD_v2(p + pitch, values[1], 8));
  CUDA_RESOURCE_DESC r = {.resType = CU_RESOURCE_TYPE_PITCH2D};
  r.res.pitch2D.devPtr = p;
  r.res.pitch2D.format = CU_AD_FORMAT_FLOAT;
  r.res.pitch2D.numChannels = 1;
  r.res.pitch2D.width = r.res.pitch2D.height = 2;
  r.res.pitch2D.pitchInBytes = pitch;
  same(sample_texture_at(texture(&r, 1, 0, 0), 2, 1.5f, 1.5f, 0, 0), 5);
  CUtexObject t;
  CUDA_TEXTURE_DESC how = {.flags = 0};
  r.res.pitch2D.pitchInBytes = pitch + 4;
  fails(cuTexObjectCreate(&t, &r, &how, NULL), CUDA_ERROR_INVALID_VALUE);
  CUarray slices = array_of(CU_AD_FORMAT_FLOAT, 1, 2, 2, 6, 0);
  CUarray layers = array_of(CU_AD_FORMAT_FLOAT, 1, 2, 2, 6, CUDA_ARRAY3D_LAYERED);
  CUarray cube = array_of(CU_AD_FORMAT_FLOAT, 1, 2, 2, 6, CUDA_ARRAY3D_CUBEMAP);
  fill_array(slices, values, 8, 2, 6);
  fill_array(layers, values, 8, 2, 6);
  fill_array(cube, values, 8, 2, 6);
  r = on_array(slices);
  same(sample_texture_at(texture(&r, 1, 0, 0), 3, 1, 0, 4, 0), 17);
  same(sample_texture_at(texture(&r, 1, 1, 0), 3, 0.5f, 0.5f, 1.0f, 0),
       2); /* between slices 0 and 1 */
  r = on_array(layers);
  same(sample_texture_at(texture(&r, 1, 1, 0), 2, 1.0f, 1.0f, 0, 3), 13.5f);
  same(sample_texture_at(texture(&r, 1, 0, 0), 2, 0, 0, 0, 99), 20); /* the last layer */
  r = on_array(cube);
  t = texture(&r, 1, 0, NORMALIZED);
  static const float ways[6][3] = {{1, .1f, .1f},  {-1, .1f, .1f}, {.1f, 1, .1f},
                                   {.1f, -1, .1f}, {.1f, .1f, 1},  {.1f, .1f, -1}};
  static const int face_texel[6] = {0, 1, 3, 1, 1, 0};
  for (int face = 0; face < 6; face++) {
    float place[3], out[4];
    ck_assert_int_eq(weir_texture_face(ways[face][0], ways[face][1], ways[face][2], place), face);
    weir_texture_sample(t, 2, place, face, out);
    same(out[0], (float)(4 * face + face_texel[face]));
  }
}
END_TEST

START_TEST(an_object_tells_what_it_was_made_of)
{
  CUDA_RESOURCE_DESC r = on_array(array_of(CU_AD_FORMAT_FLOAT, 1, 4, 0, 0, 0)), got;
  CUDA_TEXTURE_DESC how = {.filterMode = CU_TR_FILTER_MODE_LINEAR, .maxAnisotropy = 3}, got_how;
  CUDA_RESOURCE_VIEW_DESC view = {.width = 4}, got_view;
  CUtexObject t;
  ok(cuTexObjectCreate(&t, &r, &how, &view));
  ok(cuTexObjectGetResourceDesc(&got, t));
  ck_assert_mem_eq(&got, &r, sizeof r);
  ok(cuTexObjectGetTextureDesc(&got_how, t));
  ck_assert_mem_eq(&got_how, &how, sizeof how);
  ok(cuTexObjectGetResourceViewDesc(&got_view, t));
  ck_assert_mem_eq(&got_view, &view, sizeof view);
  fails(cuSurfObjectDestroy(t), CUDA_ERROR_INVALID_VALUE);
  ok(cuTexObjectDestroy(t));
  fails(cuTexObjectGetResourceDesc(&got, t), CUDA_ERROR_INVALID_VALUE);
  ok(cuTexObjectCreate(&t, &r, &how, NULL));
  fails(cuTexObjectGetResourceViewDesc(&got_view, t), CUDA_ERROR_INVALID_VALUE);
  view.format = CU_RES_VIEW_FORMAT_UINT_1X32;
  fails(cuTexObjectCreate(&t, &r, &how, &view), CUDA_ERROR_NOT_SUPPORTED);
  how.flags = CU_TRSF_SRGB;
  fails(cuTexObjectCreate(&t, &r, &how, NULL), CUDA_ERROR_NOT_SUPPORTED);
  r.flags = 1;
  fails(cuTexObjectCreate(&t, &r, &how, NULL), CUDA_ERROR_INVALID_VALUE);
  r = (CUDA_RESOURCE_DESC){.resType = CU_RESOURCE_TYPE_LINEAR};
  r.res.linear.devPtr = (CUdeviceptr)(uintptr_t)&r / 512 * 512;
  r.res.linear.format = CU_AD_FORMAT_FLOAT;
  r.res.linear.numChannels = 1;
  r.res.linear.sizeInBytes = 64;
  how.flags = 0;
  fails(cuTexObjectCreate(&t, &r, &how, NULL), CUDA_ERROR_INVALID_VALUE); /* the program's stack */
  r.res.linear.devPtr = device_bytes(1024) + 4;
  fails(cuTexObjectCreate(&t, &r, &how, NULL), CUDA_ERROR_INVALID_VALUE); /* not aligned */
  size_t width = 0;
  ok(cuDeviceGetTexture1DLinearMaxWidth(&width, CU_AD_FORMAT_FLOAT, 4, 0));
  ck_assert_uint_ge(width, 1 << 27);
}
END_TEST

static void write_past(void *const *arguments, const struct weir_twin_thread *where)
{
  (void)where;
  CUsurfObject s = *(CUsurfObject *)arguments[0];
  float value = 5;
  memcpy(weir_texture_surface(s, 4, 1, 0, 0, 4, WEIR_TRAP_OUTSIDE), &value, 4);
  weir_texture_surface(s, 8, 0, 0, 0, 4, WEIR_TRAP_OUTSIDE);
}

static const uint32_t one_object[] = {8};
EXPORT const struct weir_twin weir_twin_write_past = {.version = WEIR_TWIN_VERSION,
                                                      .argument_count = 1,
                                                      .argument_sizes = one_object,
                                                      .run = write_past,
                                                      .name = "write_past"};

START_TEST(a_surface_is_written_by_bytes_and_its_edge_is_kept)
{
  float values[2][2] = {{1, 2}, {3, 4}}, got[2][2];
  CUsurfObject s;
  CUDA_RESOURCE_DESC r = on_array(array_of(CU_AD_FORMAT_FLOAT, 1, 2, 2, 0, 0)), said;
  fails(cuSurfObjectCreate(&s, &r), CUDA_ERROR_INVALID_VALUE); /* not made for it */
  CUarray a = array_of(CU_AD_FORMAT_FLOAT, 1, 2, 2, 0, CUDA_ARRAY3D_SURFACE_LDST);
  fill_array(a, values, 8, 2, 1);
  r = on_array(a);
  ok(cuSurfObjectCreate(&s, &r));
  ok(cuSurfObjectGetResourceDesc(&said, s));
  ck_assert_ptr_eq(said.res.array.hArray, a);
  ck_assert_float_eq(*(float *)(void *)weir_texture_surface(s, 4, 1, 0, 0, 4, WEIR_TRAP_OUTSIDE),
                     4);
  ck_assert_ptr_null(weir_texture_surface(s, -4, 0, 0, 0, 4, WEIR_ZERO_OUTSIDE));
  ck_assert_float_eq(*(float *)(void *)weir_texture_surface(s, 99, 99, 0, 0, 4, WEIR_CLAMP_OUTSIDE),
                     4);
  CUmodule m;
  CUfunction f;
  ok(cuModuleLoadData(&m, ".version 8.0\n.target sm_75\n.address_size 64\n"
                          ".visible .entry write_past(.param .u64 s) { ret; }\n"));
  ok(cuModuleGetFunction(&f, m, "write_past"));
  void *arguments[] = {&s};
  ok(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL));
  fails(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_INSTRUCTION); /* "the kernel execution to fail" */
  memcpy(got, weir_texture_of(s)->start, sizeof got);
  ck_assert_float_eq(got[1][1], 5);
}
END_TEST

int main(void)
{
  const TTest *const tests[] = {linear_memory_is_fetched_by_number_and_is_zero_outside,
                                coordinates_outside_follow_the_address_mode,
                                linear_filtering_is_between_centres_in_steps_of_a_256th,
                                integers_are_promoted_or_read_as_they_are,
                                pitched_memory_layers_slices_and_faces_are_found,
                                an_object_tells_what_it_was_made_of,
                                a_surface_is_written_by_bytes_and_its_edge_is_kept,
                                NULL};
  return run_tests("sim_texture", tests, set_up_device0);
}
