/* test_zip.c: .npz files and PyTorch's, both ways where there are two; deflate; and files made to
 * do harm. Files of NumPy's and PyTorch's own: tests/peers/loading.py. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/io/inflate.h"
#include "core/io/zip.h"
#include "tests/io/io.h"

typedef struct part {
  const char *name, *data;
  size_t bytes;
} part;

/* A zip file of these, stored. */
static void put_zip(const char *path, const part *parts, int count)
{
  tensor_file f;
  zip_writer w = {.file = &f};
  must(file_begin(&f, path));
  weir_status st = WEIR_OK;
  for (int i = 0; !st && i < count; i++)
    st = zip_put(&w, parts[i].name, "", 0, parts[i].data, parts[i].bytes);
  must(file_end(&f, zip_finish(&w, st)));
}

/* ---- .npz ------------------------------------------------------------------------------------ */

static weir_tensors *some_arrays(void)
{
  static const weir_dtype dtypes[] = {WEIR_UINT8,     WEIR_INT8,    WEIR_INT16,   WEIR_INT32,
                                      WEIR_INT64,     WEIR_FLOAT16, WEIR_FLOAT32, WEIR_FLOAT64,
                                      WEIR_COMPLEX64, WEIR_BOOL};
  weir_tensors *set;
  must(weir_tensors_create(&set));
  for (int i = 0; i < 10; i++) {
    weir_tensor *t;
    must(weir_arange(&t, weir_int(0), weir_int(12), weir_int(1), NULL));
    WEIR_TENSOR line = t;
    WEIR_TENSOR block = NULL;
    must(weir_view(&block, line, weir_shape(3, 4)));
    WEIR_TENSOR turned = NULL;
    must(weir_t(&turned, block));
    must(weir_to_dtype(&t, i % 2 ? turned : block, dtypes[i]));
    must(weir_tensors_put(set, weir_dtype_name(dtypes[i]), t));
    weir_tensor_release(t);
  }
  return set;
}

START_TEST(arrays_come_back_from_an_npz)
{
  WEIR_TENSORS set = some_arrays();
  WEIR_TENSORS back = NULL;
  WEIR_TENSORS guessed = NULL;
  must(weir_npz_save("t.npz", set));
  must(weir_npz_load(&back, "t.npz", NULL));
  must(weir_tensors_load(&guessed, "t.npz", NULL));
  ck_assert_uint_eq(weir_tensors_count(back), 10);
  for (size_t i = 0; i < 10; i++) {
    bool same;
    const char *name = weir_tensors_name(set, i);
    must(weir_equal(&same, weir_tensors_at(set, i), weir_tensors_get(back, name)));
    ck_assert_msg(same, "%s", name);
    must(weir_equal(&same, weir_tensors_at(set, i), weir_tensors_get(guessed, name)));
    ck_assert_msg(same, "%s", name);
    ck_assert_str_eq(weir_tensor_name(weir_tensors_get(back, name)), name);
  }
}
END_TEST

START_TEST(what_npz_has_not_is_refused)
{
  WEIR_TENSORS set = NULL;
  weir_tensors *none;
  weir_tensor *t;
  must(weir_tensors_create(&set));
  must(weir_zeros(&t, weir_shape(2), &(weir_options){.dtype = WEIR_BFLOAT16}));
  must(weir_tensors_put(set, "a", t));
  weir_tensor_release(t);
  must_fail(weir_npz_save("t.npz", set), WEIR_EINVAL, "no bfloat16");
  ck_assert_int_eq(files_there(), 0);
  put_file("t.npz", "hello", 5);
  must_fail(weir_npz_load(&none, "t.npz", NULL), WEIR_ECORRUPT, "not a zip file");
  ck_assert_ptr_null(none);
}
END_TEST

/* What numpy.savez() puts beside arrays of numbers, and a file that somebody added. */
START_TEST(arrays_that_are_no_tensors_are_skipped_by_name)
{
#define ARRAY(descr, shape, elements)                                                              \
  "\x93NUMPY\1\0\x3a\0{'descr': " descr ", 'fortran_order': False, 'shape': " shape "}" elements
  static const char text[] = ARRAY("'<U2'  ", "(1,) ", "a\0\0\0b\0\0\0");
  static const char wide[] = ARRAY("'<u4'  ", "(1,) ", "\5\0\0\0");
  static const char plain[] = ARRAY("'<f4'  ", "(1,) ", "\0\0\x80\x3f");
  const part parts[] = {{"s.npy", text, sizeof text - 1},
                        {"readme.txt", "hello", 5},
                        {"u.npy", wide, sizeof wide - 1},
                        {"a.npy", plain, sizeof plain - 1}};
  WEIR_TENSORS set = NULL;
  WEIR_TENSORS whole = NULL;
  put_zip("t.npz", parts, 4);
  must(weir_npz_load(&set, "t.npz", NULL));
  ck_assert_uint_eq(weir_tensors_count(set), 1);
  ck_assert_ptr_nonnull(weir_tensors_get(set, "a"));
  ck_assert_uint_eq(weir_tensors_skipped_count(set), 3);
  ck_assert_str_eq(weir_tensors_skipped_name(set, 0), "s");
  ck_assert_str_eq(weir_tensors_skipped_kind(set, 0), "<U2");
  ck_assert_str_eq(weir_tensors_skipped_name(set, 1), "readme.txt");
  ck_assert_str_eq(weir_tensors_skipped_kind(set, 2), "<u4");
  must(weir_npz_load(&whole, "t.npz", &(weir_options){.dtype = WEIR_INT64}));
  ck_assert_int_eq(*(int64_t *)weir_tensor_data(weir_tensors_get(whole, "u")), 5);
  ck_assert_uint_eq(weir_tensors_skipped_count(whole), 2);
#undef ARRAY
}
END_TEST

START_TEST(a_wrong_sum_is_an_error)
{
  WEIR_TENSORS set = some_arrays();
  weir_tensors *none;
  size_t bytes;
  must(weir_npz_save("t.npz", set));
  char *file = get_file("t.npz", &bytes);
  file[170] ^= 1; /* an element of the first array */
  put_file("t.npz", file, bytes);
  free(file);
  must_fail(weir_npz_load(&none, "t.npz", NULL), WEIR_ECORRUPT, "the sum that it should have");
}
END_TEST

/* ---- deflate --------------------------------------------------------------------------------- */

static bool inflates_to(const char *in, size_t bytes, const char *text)
{
  unsigned char out[64];
  size_t n = strlen(text);
  return inflate_all(out, n, (const unsigned char *)in, bytes) && !memcmp(out, text, n);
}

START_TEST(blocks_of_all_kinds_are_inflated)
{
  static const char stored[] = "\1\5\0\xfa\xffhello";
  static const char fixed[] = "\xcb\x48\xcd\xc9\xc9\x57\xc8\x40\x27\1";
  ck_assert(inflates_to(stored, sizeof stored - 1, "hello"));
  ck_assert(inflates_to(fixed, sizeof fixed - 1, "hello hello hello hello"));
  ck_assert(!inflates_to(fixed, sizeof fixed - 1, "hello hello hello hell"));  /* no room */
  ck_assert(!inflates_to(fixed, sizeof fixed - 2, "hello hello hello hello")); /* cut */
  ck_assert(!inflates_to("\7", 1, ""));                                        /* no such block */
  ck_assert(!inflates_to("\1\5\0\xfb\xffhello", 10, "hello")); /* lengths that differ */
}
END_TEST

/* 300 letters, as zlib deflates them: a block with codes of its own. */
static const char dynamic[] =
    "\x3d\x90\x01\x0e\xc0\x20\x0c\x02\xdf\x0a\xe5\xff\x6f\x58\x8f\xc6\x99\x69\xb4\x32"
    "\xae\xa8\x8c\x1c\x47\x91\x35\x92\x67\x6c\x49\xc3\x92\x9d\xdc\x7a\xa7\x28\x98\xcf"
    "\xb3\xc7\xe1\x1f\x23\xd9\x6d\x9e\x14\x95\x6f\xa3\xad\xa2\xc3\x94\x11\xcc\x2b\x33"
    "\x32\xe3\x32\x54\xeb\x39\x00\x4b\xc1\xcc\x10\x4f\x8d\x5f\x4a\xa7\x74\xc4\x5a\x16"
    "\x94\x12\x91\x40\x15\x51\xee\x74\x69\x4a\x7a\xad\x67\xdc\x7c\x8d\xd6\x76\x7f\x7d"
    "\x0d\x37\x78\x1f\xa1\x9d\x48\xaf\x6f\x9f\x75\xf6\xfa\x03";
static const char letters[] =
    "adcabdbdadabacaabccbbaaacbaaadaaaabdbbbdbabaaabaababcbdbcdbdabaadabcddaadaaaabba"
    "babaaabbaaddabdbcacaaaaaadcaabadaaabbbabbbcbdcadcabaabacacbabdbabddaabbbbdabadaa"
    "babaddbababbdaabaadaacaaababaadbbabaabadbaaaacabdaabadbdabacabbbabdbabaaabdcbcaa"
    "bcacbaadaaaaacabdaabaacaaaccbadabaacbabaaacaaaaaabdbaaaadccb";

START_TEST(codes_of_the_block_s_own_are_inflated)
{
  unsigned char out[sizeof letters];
  ck_assert_uint_eq(dynamic[0] >> 1 & 3, 2);
  ck_assert(inflate_all(out, 300, (const unsigned char *)dynamic, sizeof dynamic - 1));
  ck_assert_mem_eq(out, letters, 300);
}
END_TEST

/* A stream is cut at every byte, and each of its bits changed: an error or other bytes, and never
 * one too many (the sanitizers look on). */
START_TEST(damaged_streams_are_survived)
{
  unsigned char out[300];
  unsigned wrong = 0;
  for (size_t n = 0; n < sizeof dynamic - 1; n++) {
    unsigned char *cut = malloc(n + 1);
    memcpy(cut, dynamic, n);
    ck_assert(!inflate_all(out, sizeof out, cut, n));
    free(cut);
  }
  for (size_t i = 0; i < 8 * (sizeof dynamic - 1); i++) {
    unsigned char in[sizeof dynamic];
    memcpy(in, dynamic, sizeof in);
    in[i / 8] ^= (unsigned char)(1 << i % 8);
    wrong += !inflate_all(out, sizeof out, in, sizeof dynamic - 1);
  }
  ck_assert_uint_gt(wrong, sizeof dynamic);
}
END_TEST

START_TEST(the_sum_is_crc_32)
{
  ck_assert_uint_eq(crc32_of(0, "123456789", 9), 0xcbf43926);
  ck_assert_uint_eq(crc32_of(crc32_of(0, "1234", 4), "56789", 5), 0xcbf43926);
  ck_assert_uint_eq(crc32_of(0, "", 0), 0);
}
END_TEST

/* ---- PyTorch's ------------------------------------------------------------------------------- */

/* One storage of 6 floats, 0 to 5, under '0'; the pickle is the caller's. */
static void put_pt(const char *pickle, size_t bytes)
{
  static const float values[6] = {0, 1, 2, 3, 4, 5};
  const part parts[] = {{"archive/data.pkl", pickle, bytes},
                        {"archive/byteorder", "little", 6},
                        {"archive/data/0", (const char *)values, sizeof values}};
  put_zip("t.pt", parts, 3);
}

#define STORAGE_OF(count)                                                                          \
  "(X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0"                                               \
  "0X\3\0\0\0cpuK" count "tQ"
#define STORAGE STORAGE_OF("\6")
#define REBUILD "ctorch._utils\n_rebuild_tensor_v2\n"
#define TENSOR(storage, offset, size, stride)                                                      \
  REBUILD "(" storage "K" offset "(" size "t(" stride "t\x89N"                                     \
          "tR"
#define KEY            "X\1\0\0\0"
#define DICT(items)    "\x80\2}(" items "u."
#define PUT_PT(pickle) put_pt(pickle, sizeof pickle - 1)

START_TEST(tensors_keep_strides_and_what_they_share)
{
  WEIR_TENSORS set = NULL;
  PUT_PT(DICT(KEY "a" TENSOR(STORAGE, "\0", "K\2K\3", "K\3K\1") KEY
              "b" TENSOR(STORAGE, "\1", "K\2", "K\2") KEY "n"
                                                          "K\7" KEY "f"
                                                          "G\x3f\xb9\x99\x99\x99\x99\x99\x9a"));
  must(weir_tensors_load(&set, "t.pt", NULL));
  ck_assert_uint_eq(weir_tensors_count(set), 2);
  weir_tensor *a = weir_tensors_get(set, "a"), *b = weir_tensors_get(set, "b");
  ck_assert(weir_tensor_shares_storage(a, b));
  ck_assert_int_eq(weir_tensor_stride(a, 0), 3);
  ck_assert_int_eq(weir_tensor_stride(b, 0), 2);
  ck_assert(((float *)weir_tensor_data(b))[0] == 1 && ((float *)weir_tensor_data(b))[2] == 3);
  ck_assert_str_eq(weir_tensor_name(a), "a");
  ck_assert_str_eq(weir_tensors_metadata(set, "n"), "7");
  ck_assert_str_eq(weir_tensors_metadata(set, "f"), "0.1");
}
END_TEST

START_TEST(a_dtype_makes_each_a_tensor_of_its_own)
{
  WEIR_TENSORS set = NULL;
  PUT_PT(DICT(KEY "a" TENSOR(STORAGE, "\0", "K\6", "K\1") KEY
              "b" TENSOR(STORAGE, "\1", "K\2", "K\2")));
  must(weir_pt_load(&set, "t.pt", &(weir_options){.dtype = WEIR_FLOAT64}));
  ck_assert_int_eq(weir_tensor_dtype(weir_tensors_get(set, "b")), WEIR_FLOAT64);
  ck_assert(((double *)weir_tensor_data(weir_tensors_get(set, "b")))[1] == 3);
}
END_TEST

/* What a training script saves beside its weights; item by item, each in its own manner. */
START_TEST(objects_of_classes_are_skipped_by_name_beside_tensors)
{
  WEIR_TENSORS set = NULL;
  PUT_PT(DICT(
      KEY "a"                                                     /* argparse.Namespace(lr=1) */
          "cargparse\nNamespace\n)\x81}(X\2\0\0\0lrK\1ub" KEY "b" /* of OrderedDict's class */
          "cmine\nState\n)R(" KEY
          "w" TENSOR(STORAGE, "\0", "K\2",
                     "K\1") "u}b" KEY "c" /* numpy.float64(0) */
                            "cnumpy._core.multiarray\nscalar\n(cnumpy\ndtype\n(X\2\0\0\0"
                            "f8\x89\x88tR(K\3NtbC\1"
                            "xtR" KEY "d" /* of a class of before protocol 2 */
                            "ccopyreg\n_reconstructor\n(cmine\nOld\nc__builtin__\nobject\nNtR" KEY
                            "e" /* {1}, by protocol 4 */
                            "\x8f(K\1\x90" KEY "f"
                            "ctorch\nfloat16\n" KEY "g" /* of a storage of no dtype of ours */
      TENSOR("(X\7\0\0\0storagectorch\nComplexDoubleStorage\nX\1\0\0\0"
             "0X\3\0\0\0cpuK\1tQ",
             "\0", "K\1", "K\1") KEY
      "h"
      "]" TENSOR(STORAGE, "\1", "K\1", "K\1") "a" KEY "i" /* os.system("true") */
                                              "cos\nsystem\n(X\4\0\0\0truetR"
                                              "NK\1"));
  must(weir_pt_load(&set, "t.pt", NULL));
  ck_assert_uint_eq(weir_tensors_count(set), 2);
  ck_assert_ptr_nonnull(weir_tensors_get(set, "b.w"));
  ck_assert_ptr_nonnull(weir_tensors_get(set, "h.0"));
  ck_assert_str_eq(weir_tensors_metadata(set, "f"), "torch.float16");
  static const char *const skipped[][2] = {{"a", "argparse.Namespace"},
                                           {"c", "numpy._core.multiarray.scalar"},
                                           {"d", "mine.Old"},
                                           {"e", "a set"},
                                           {"g", "torch.ComplexDoubleStorage"},
                                           {"i", "os.system"},
                                           {"", "an item whose key is neither text nor a number"}};
  ck_assert_uint_eq(weir_tensors_skipped_count(set), sizeof skipped / sizeof *skipped);
  for (size_t i = 0; i < sizeof skipped / sizeof *skipped; i++) {
    ck_assert_str_eq(weir_tensors_skipped_name(set, i), skipped[i][0]);
    ck_assert_str_eq(weir_tensors_skipped_kind(set, i), skipped[i][1]);
  }
}
END_TEST

/* As torch.save() writes tensors of its newer dtypes: untyped storages, the dtype behind. */
#define FOREIGN_TENSOR(dtype, offset, size, stride)                                                \
  "ctorch._utils\n_rebuild_tensor_v3\n("                                                           \
  "(X\7\0\0\0storagectorch.storage\nUntypedStorage\nX\1\0\0\0"                                     \
  "0X\3\0\0\0cpuK\x18tQK" offset "(" size "t(" stride "t\x89}ctorch\n" dtype "\ntR"

START_TEST(tensors_of_foreign_dtypes_are_skipped_converted_or_had_as_bytes)
{
  WEIR_TENSORS set = NULL;
  WEIR_TENSORS floats = NULL;
  WEIR_TENSORS bytes = NULL;
  int32_t values[4];
  PUT_PT(DICT(KEY "u" FOREIGN_TENSOR("uint16", "\2", "K\2K\2", "K\1K\4") KEY "q" FOREIGN_TENSOR(
      "float8_e5m2", "\7", "K\1", "K\1") KEY "x" FOREIGN_TENSOR("float4_e2m1", "\0", "K\1", "K\1")
                  KEY "a" TENSOR(STORAGE, "\0", "K\1", "K\1")));
  must(weir_pt_load(&set, "t.pt", NULL));
  ck_assert_uint_eq(weir_tensors_count(set), 1);
  ck_assert_uint_eq(weir_tensors_skipped_count(set), 3);
  ck_assert_str_eq(weir_tensors_skipped_kind(set, 1), "torch.float8_e5m2");
  must(weir_pt_load(&floats, "t.pt", &(weir_options){.dtype = WEIR_FLOAT32}));
  ck_assert_uint_eq(weir_tensors_count(floats), 3);
  must(weir_tensor_read(values, sizeof values, WEIR_INT32, weir_tensors_get(floats, "u")));
  ck_assert(values[0] == 0 && values[1] == 0 && values[2] == 0x3f80 && values[3] == 0x4040);
  ck_assert(*(float *)weir_tensor_data(weir_tensors_get(floats, "q")) == 1.75F); /* 0x3f */
  must(weir_pt_load(&bytes, "t.pt", &(weir_options){.as_bytes = true}));
  const weir_tensor *u = weir_tensors_get(bytes, "u");
  ck_assert_int_eq(weir_tensor_dtype(u), WEIR_UINT8);
  ck_assert_int_eq(weir_tensor_dim(u), 3);
  ck_assert_int_eq(weir_tensor_stride(u, 1), 8);
  ck_assert_int_eq(((uint8_t *)weir_tensor_data(u))[3], 0x3f); /* bytes 4 to 7 are of 1.0 */
}
END_TEST

#define BAD(pickle, status, words)                                                                 \
  {                                                                                                \
    pickle, sizeof pickle - 1, status, words                                                       \
  }

static const struct {
  const char *pickle;
  size_t bytes;
  weir_status status;
  const char *words;
} bad_pickle[] = {
    BAD("\x80\2cos\nsystem\n(X\4\0\0\0truetR.", WEIR_ENOTSUP, "the pickle calls os.system"),
    BAD("\x80\2c__builtin__\neval\n.", WEIR_ENOTSUP, "__builtin__.eval"),
    BAD("\x80\4X\2\0\0\0osX\6\0\0\0system\x93.", WEIR_ENOTSUP, "os.system"),
    BAD("\x80\2ctorch\nComplexDoubleStorage\n.", WEIR_ENOTSUP, "torch.ComplexDoubleStorage"),
    BAD("\x80\2ctorch\nSize\n)\x81.", WEIR_ECORRUPT, "made of nothing"),
    BAD("\x80\2(cmine\nOld\no.", WEIR_ENOTSUP, "an object of a class"),
    BAD("\x80\2cargparse\nNamespace\n)\x81}b.", WEIR_ENOTSUP, "argparse.Namespace"),
    BAD("\x80\2N)}\x92.", WEIR_ECORRUPT, "what is called"),
    BAD("\x80\2(K\1\x90.", WEIR_ECORRUPT, "a set is missing"),
    BAD("\x80\2\x90.", WEIR_ECORRUPT, "a mark is missing"),
    BAD("\x80\2(2.", WEIR_ECORRUPT, "to be doubled"),
    BAD("\x80\2ctorch._tensor\n_rebuild_from_type_v2\n)R.", WEIR_ECORRUPT, "something else"),
    BAD("ctorch._tensor\n_rebuild_from_type_v2\n(ctorch._tensor\n_rebuild_from_type_v2\nN)tR.",
        WEIR_ECORRUPT, "something else"),
    BAD(DICT(KEY "u" FOREIGN_TENSOR("uint16", "\0", "K\x0d", "K\1")), WEIR_ECORRUPT,
        "beyond its storage"),
    BAD(DICT(KEY "u" FOREIGN_TENSOR("Size", "\0", "K\1", "K\1")), WEIR_ECORRUPT, "dtype is none"),
    BAD("\x80\2N}b.", WEIR_ENOTSUP, "sets the state"),
    BAD("", WEIR_ECORRUPT, "it does not stop"),
    BAD(".", WEIR_ECORRUPT, "does not leave one value"),
    BAD("NN.", WEIR_ECORRUPT, "does not leave one value"),
    BAD("(N.", WEIR_ECORRUPT, "does not leave one value"),
    BAD("0.", WEIR_ECORRUPT, "taken off"),
    BAD("t.", WEIR_ECORRUPT, "a mark is missing"),
    BAD("N(0.", WEIR_ECORRUPT, "taken off"),
    BAD("\x86.", WEIR_ECORRUPT, "values are missing"),
    BAD("N(\x85.", WEIR_ECORRUPT, "values are missing"),
    BAD("Na.", WEIR_ECORRUPT, "a list is missing"),
    BAD("]Ns.", WEIR_ECORRUPT, "a dict is missing"),
    BAD("](Nu.", WEIR_ECORRUPT, "a dict is missing"),
    BAD("}(Nu.", WEIR_ECORRUPT, "a key has no value"),
    BAD("}(e.", WEIR_ECORRUPT, "a list is missing"),
    BAD("h\0.", WEIR_ECORRUPT, "nothing was remembered"),
    BAD("Nj\xff\xff\xff\xff.", WEIR_ECORRUPT, "nothing was remembered"),
    BAD("Nr\xff\xff\xff\x7f.", WEIR_ECORRUPT, "a memo's number is skipped"),
    BAD("q\0.", WEIR_ECORRUPT, "nothing is there"),
    BAD("X\xff\xff\xff\xff"
        "abc",
        WEIR_ECORRUPT, "it ends too early"),
    BAD("ctorch\nSize", WEIR_ECORRUPT, "a name does not end"),
    BAD("NQ.", WEIR_ECORRUPT, "no storage"),
    BAD("NR.", WEIR_ECORRUPT, "what is called"),
    BAD("N)R.", WEIR_ECORRUPT, "what is called"),
    BAD("\xff.", WEIR_ENOTSUP, "opcode 0xff"),
    BAD("]q\0h\0a.", WEIR_ENOTSUP, "nested more than 64 deep"),
    BAD(REBUILD ")R.", WEIR_ECORRUPT, "something else than a storage"),
    BAD("ctorch._utils\n_rebuild_parameter\n(NtR.", WEIR_ECORRUPT, "something else than a tensor"),
    BAD(DICT(KEY "a" TENSOR(STORAGE, "\1", "K\2K\3", "K\3K\1")), WEIR_ECORRUPT,
        "beyond its storage"),
    BAD(DICT(KEY "a" TENSOR(STORAGE, "\0", "K\7", "K\1")), WEIR_ECORRUPT, "beyond its storage"),
    BAD(DICT(KEY "a" TENSOR(STORAGE, "\0", "K\2K\2", "K\1")), WEIR_ECORRUPT, "beyond its storage"),
    BAD(DICT(KEY "a" TENSOR(STORAGE, "\0", "J\xff\xff\xff\xff", "K\1")), WEIR_ECORRUPT,
        "no integer of at least 0"),
    BAD(DICT(KEY "a" TENSOR(STORAGE, "\0", "K\2", "J\xff\xff\xff\xff")), WEIR_ECORRUPT,
        "no integer of at least 0"),
    BAD(DICT(KEY "a" TENSOR(STORAGE, "\0", "\x8a\10\xff\xff\xff\xff\xff\xff\xff\x7f",
                            "\x8a\10\xff\xff\xff\xff\xff\xff\xff\x7f")),
        WEIR_ECORRUPT, "beyond its storage"),
    BAD(DICT(KEY "a" TENSOR(STORAGE, "\0", "K\1K\1K\1K\1K\1K\1K\1K\1K\1", "K\1")), WEIR_ENOTSUP,
        "more than 8 dimensions"),
    BAD(DICT(KEY "a" TENSOR(STORAGE_OF("\5"), "\0", "K\2", "K\1")), WEIR_ECORRUPT,
        "has 24 bytes, the pickle says 20"),
    BAD(DICT(KEY "a" TENSOR("(X\7\0\0\0storagectorch\nFloatStorage\nX\4\0\0\0"
                            "../0X\3\0\0\0cpuK\6tQ",
                            "\0", "K\2", "K\1")),
        WEIR_ECORRUPT, "'archive/data/../0' is not there"),
};

START_TEST(what_makes_no_tensor_is_refused_by_name)
{
  weir_tensors *set = (weir_tensors *)&set;
  put_pt(bad_pickle[_i].pickle, bad_pickle[_i].bytes);
  weir_options bytes = {.as_bytes = true};
  must_fail(weir_pt_load(&set, "t.pt", &bytes), bad_pickle[_i].status, bad_pickle[_i].words);
  ck_assert_ptr_null(set);
}
END_TEST

START_TEST(the_format_before_zip_files_is_named)
{
  weir_tensors *none;
  put_file("t.pt", "\x80\x02\x8a\x0alF\x9c", 7);
  must_fail(weir_tensors_load(&none, "t.pt", NULL), WEIR_ENOTSUP, "before 1.6");
  static const part other = {"other.txt", "x", 1};
  put_zip("t.pt", &other, 1);
  must_fail(weir_pt_load(&none, "t.pt", NULL), WEIR_ENOTSUP, "without data.pkl");
}
END_TEST

/* ---- damage ---------------------------------------------------------------------------------- */

static void read_all_elements(const weir_tensors *set)
{
  for (size_t i = 0; i < weir_tensors_count(set); i++) {
    char *text;
    must(weir_tensor_to_string(&text, weir_tensors_at(set, i)));
    free(text);
  }
}

static void damage(const char *path,
                   weir_status (*load)(weir_tensors **, const char *, const weir_options *))
{
  size_t bytes;
  char *file = get_file(path, &bytes);
  for (size_t n = 0; n < bytes; n++) {
    weir_tensors *set;
    put_file("odd", file, n);
    must_fail(load(&set, "odd", NULL), WEIR_ECORRUPT, "");
    ck_assert_ptr_null(set);
  }
  for (size_t i = 0; i < bytes * 8; i++) {
    weir_tensors *set;
    file[i / 8] ^= (char)(1 << i % 8);
    put_file("odd", file, bytes);
    file[i / 8] ^= (char)(1 << i % 8);
    if (load(&set, "odd", NULL)) continue;
    read_all_elements(set);
    weir_tensors_release(set);
  }
  free(file);
}

START_TEST(every_cut_and_every_changed_bit_is_survived)
{
  WEIR_TENSORS set = NULL;
  weir_tensor *t;
  must(weir_tensors_create(&set));
  must(weir_arange(&t, weir_int(0), weir_int(5), weir_int(1), NULL));
  must(weir_tensors_put(set, "a", t));
  must(weir_tensors_put(set, "b", t));
  weir_tensor_release(t);
  must(weir_npz_save("t.npz", set));
  damage("t.npz", weir_npz_load);
  PUT_PT(DICT(KEY "a" TENSOR(STORAGE, "\0", "K\2K\3", "K\3K\1") KEY
              "b" TENSOR(STORAGE, "\1", "K\2", "K\2")));
  damage("t.pt", weir_pt_load);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("io/zip");
  TCase *c = tcase_create("zip");
  tcase_set_timeout(c, 0);
  tcase_add_checked_fixture(c, enter_folder, leave_folder);
  tcase_add_test(c, arrays_come_back_from_an_npz);
  tcase_add_test(c, what_npz_has_not_is_refused);
  tcase_add_test(c, arrays_that_are_no_tensors_are_skipped_by_name);
  tcase_add_test(c, a_wrong_sum_is_an_error);
  tcase_add_test(c, blocks_of_all_kinds_are_inflated);
  tcase_add_test(c, codes_of_the_block_s_own_are_inflated);
  tcase_add_test(c, damaged_streams_are_survived);
  tcase_add_test(c, the_sum_is_crc_32);
  tcase_add_test(c, tensors_keep_strides_and_what_they_share);
  tcase_add_test(c, a_dtype_makes_each_a_tensor_of_its_own);
  tcase_add_test(c, objects_of_classes_are_skipped_by_name_beside_tensors);
  tcase_add_test(c, tensors_of_foreign_dtypes_are_skipped_converted_or_had_as_bytes);
  tcase_add_loop_test(c, what_makes_no_tensor_is_refused_by_name, 0,
                      sizeof bad_pickle / sizeof *bad_pickle);
  tcase_add_test(c, the_format_before_zip_files_is_named);
  tcase_add_test(c, every_cut_and_every_changed_bit_is_survived);
  suite_add_tcase(s, c);
  return run_io_suite(s);
}
