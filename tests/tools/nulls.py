#!/usr/bin/env python3
"""nulls.py LIBWEIR SOURCE [FUNCTION]: calls every public function with good arguments, which must succeed, and then with NULL
for each of its pointers, one at a time, the others being as good as before; a function's calls in a process of their own, and
each in one of its own where those are not all right. None may end by a signal; a status that is not success must be EINVAL with a sentence that begins with the function's name, and the function's
*out NULL. Prints the calls that were not so, and how many there were. Prototypes are the headers' own, as the preprocessor
gives them."""
import ctypes as C
import os
import re
import signal
import subprocess
import sys
import zipfile

OK, EINVAL, EOOM = 0, 1, 10


class Shape(C.Structure):
    _fields_ = [('count', C.c_int), ('size', C.c_int64 * 8)]


class Device(C.Structure):
    _fields_ = [('type', C.c_int), ('plus_1', C.c_int)]

    def __init__(self, type=0, index=-1):
        super().__init__(type, index + 1)

    @property
    def index(self):
        return self.plus_1 - 1


class Scalar(C.Structure):
    _fields_ = [('dtype', C.c_int), ('i', C.c_int64), ('f', C.c_double), ('imag', C.c_double)]


class Options(C.Structure):
    _fields_ = [('dtype', C.c_int), ('device', Device), ('flags', C.c_bool * 5)]


class State(C.Structure):
    _fields_ = [('seed', C.c_uint64), ('offset', C.c_uint64)]


# Their out is an array.
SEVERAL = ('weir_chunk', 'weir_split', 'weir_unbind', 'weir_split_with_sizes', 'weir_tensor_split', 'weir_tensor_split_at', 'weir_meshgrid', 'weir_nonzero_tuple',
           'weir_grad', 'weir_parallel_scatter', 'weir_replicate', 'weir_parallel_apply', 'weir_tensor_drop', 'weir_module_drop')
CPU, CUDA = Device(1, 0), Device(2, 0)
# What a tensor of a function must look like for its other checks to pass.
SHAPES = {'weir_backward': (), 'weir_conv2d': (1, 1, 2, 2), 'weir_max_pool2d': (1, 1, 2, 2), 'weir_bmm': (1, 2, 2), 'weir_outer': (2,), 'weir_addbmm': (1, 2, 2), 'weir_baddbmm': (1, 2, 2), 'weir_cross': (1, 1, 3), 'weir_vander': (2,), 'weir_dot': (2,), 'weir_bucketize': (2,), 'weir_bincount': (2,), 'weir_item': ()}
SHAPES.update({
    'weir_avg_pool1d': (1, 1, 2),
    'weir_avg_pool2d': (1, 1, 2, 2),
    'weir_avg_pool3d': (1, 1, 2, 2, 2),
    'weir_adaptive_avg_pool1d': (1, 1, 2),
    'weir_adaptive_avg_pool2d': (1, 1, 2, 2),
    'weir_adaptive_avg_pool3d': (1, 1, 2, 2, 2),
    'weir_adaptive_max_pool1d': (1, 1, 2),
    'weir_adaptive_max_pool2d': (1, 1, 2, 2),
    'weir_adaptive_max_pool3d': (1, 1, 2, 2, 2),
    'weir_max_pool1d': (1, 1, 2),
    'weir_max_pool3d': (1, 1, 2, 2, 2),
    'weir_max_pool1d_with_indices': (1, 1, 2),
    'weir_max_pool2d_with_indices': (1, 1, 2, 2),
    'weir_max_pool3d_with_indices': (1, 1, 2, 2, 2),
    'weir_batch_norm': (2, 1),
    'weir_instance_norm': (2, 1, 2),
    'weir_pixel_shuffle': (1, 1, 1),
    'weir_pixel_unshuffle': (1, 1, 1),
    'weir_channel_shuffle': (1, 1, 1), 'weir_unfold_blocks': (1, 2, 2), 'weir_fold': (1, 4), 'weir_cov': (2, 2), 'weir_corrcoef': (2, 2),
    'weir_lp_pool1d': (1, 1, 2), 'weir_lp_pool2d': (1, 1, 2, 2), 'weir_lp_pool3d': (1, 1, 2, 2, 2), 'weir_trapezoid': (2, 2),
    'weir_cumulative_trapezoid': (2, 2), 'weir_renorm': (2, 2),
    'weir_group_norm': (2, 2), 'weir_interpolate': (1, 1, 2),
    **{'weir_conv%s%dd' % (k, n): (1, 1) + (2,) * n for k in ('', '_transpose') for n in (1, 2, 3) if (k, n) != ('', 2)}})
VALUES = {'int': 1, 'unsigned': 1, '_Bool': False, 'int64_t': 1, 'uint64_t': 1, 'size_t': 64, 'ssize_t': 1, 'double': 1.0,
          'intptr_t': 1, 'weir_dtype': 7, 'weir_device_type': 1, 'weir_blas': 0, 'weir_status': 0}
CTYPES = {'int': C.c_int, 'unsigned': C.c_uint, '_Bool': C.c_bool, 'int64_t': C.c_int64, 'uint64_t': C.c_uint64,
          'size_t': C.c_size_t, 'ssize_t': C.c_ssize_t, 'double': C.c_double, 'intptr_t': C.c_ssize_t}
# There it is another stream than the one before, which is not begun.
OTHER = {('weir_graph_pool_end', 1)}
# No good call can be made from here: its first argument is a device of the program's own.
NOT_GOOD = {'weir_memory_attach'}


class Dataset(C.Structure):
    LENGTH, GET = C.CFUNCTYPE(C.c_int64, C.c_void_p), C.CFUNCTYPE(C.c_int, C.c_void_p, C.c_void_p, C.c_int64)
    _fields_ = [('length', LENGTH), ('get', GET), ('destroy', C.c_void_p), ('user', C.c_void_p)]


def pool_options(m):
    return m.room((C.c_int64 * 8)(1, 1))


def dlpack(version):
    return {1: lambda m: m.made('weir_to_dlpack' + version, m.tensor(), None)}


def blocks(m):
    return m.room((C.c_int64 * 8)(1, 1))


def pool_3d(m):
    return m.room((C.c_int64 * 14)(1, 1, 1))


def class_options(m):
    return m.room((C.c_int64 * 5)())


def conv_options(m):
    return m.room((C.c_int64 * 14)())


def interpolation(m):
    return m.room((C.c_int64 * 8)(2))


def batch_norm(m):
    return m.room((C.c_char * 24)(1))


# What the type of an argument does not say: by function, its arguments by place.
GOOD = {
    'weir_bincount': {1: lambda m: m.index((2,))},
    'weir_vander': {2: lambda m: C.c_int64(2)},
    'weir_cuda_get_device_properties': {1: lambda m: C.c_int(0)},
    'weir_device_parse': {1: lambda m: b'cuda'},
    'weir_dtype_parse': {1: lambda m: b'int8'},
    'weir_type_parse': {2: lambda m: b'weir.FloatTensor'},
    'weir_set_default_tensor_type': {0: lambda m: b'weir.FloatTensor'},
    'weir_to_type': {2: lambda m: b'weir.FloatTensor'},
    'weir_randint': {2: lambda m: C.c_int64(5)},
    'weir_multinomial': {2: lambda m: C.c_int64(1)},
    'weir_random_': {2: lambda m: C.c_int64(5)},
    'weir_tensor_read': {1: lambda m: C.c_size_t(16)},
    'weir_permute': {2: lambda m: m.room((C.c_int * 2)(1, 0))},
    'weir_split': {2: lambda m: C.c_int(2)},
    'weir_unbind': {2: lambda m: C.c_int(2)},
    'weir_split_with_sizes': {2: lambda m: m.room((C.c_int64 * 1)(2))},
    'weir_diagonal': {3: lambda m: C.c_int(0)},
    'weir_diag_embed': {3: lambda m: C.c_int(0)},
    'weir_rot90': {3: lambda m: C.c_int(0)},
    'weir_view_as_real': {1: lambda m: m.made('weir_to_dtype', m.tensor(), C.c_int(9))},
    'weir_imag': {1: lambda m: m.made('weir_to_dtype', m.tensor(), C.c_int(9))},
    'weir_unflatten': {3: lambda m: Shape(2, (C.c_int64 * 8)(2, 1))},
    'weir_meshgrid': {1: lambda m: m.room((C.c_void_p * 1)(m.tensor((2,)).value))},
    'weir_cartesian_prod': {1: lambda m: m.room((C.c_void_p * 1)(m.tensor((2,)).value))},
    'weir_block_diag': {1: lambda m: m.tensors(1)},
    'weir_unfold_blocks': {2: blocks}, 'weir_fold': {2: lambda m: m.room((C.c_int64 * 2)(2, 2)), 3: blocks},
    'weir_lp_pool1d': {3: pool_3d}, 'weir_lp_pool2d': {3: pool_3d}, 'weir_lp_pool3d': {3: pool_3d},
    'weir_hstack': {1: lambda m: m.tensors(1)},
    'weir_vstack': {1: lambda m: m.tensors(1)},
    'weir_dstack': {1: lambda m: m.tensors(1)},
    'weir_pad': {3: lambda m: C.c_int(2)},
    'weir_set_print_options': {0: lambda m: m.room((C.c_int * 5)(4, 1000, 3, 80, 0))},
    'weir_tensor_dataset': {1: lambda m: m.tensors(2), 2: lambda m: C.c_int(2)},
    'weir_optimizer_get_options': {2: lambda m: C.c_int(0)},
    'weir_optimizer_set_options': {1: lambda m: C.c_int(0)},
    'weir_schedule_step_measure': {0: lambda m: m.made('weir_schedule_create', m.handle('weir_optimizer *'), 10, None)},
    'weir_schedule_load_state': {1: lambda m: m.made('weir_schedule_state', m.handle('weir_schedule *'))},
    'weir_schedule_create': {2: lambda m: C.c_int(4)},
    'weir_optimizer_create': {1: lambda m: C.c_int(0), 2: lambda m: m.tensors(1), 3: lambda m: C.c_int(1)},
    'weir_optimizer_add_group': {1: lambda m: m.tensors(1), 2: lambda m: C.c_int(1)},
    'weir_grad_scaler_new': {1: lambda m: None},
    'weir_grad_scaler_step': {0: lambda m: m.scaled(), 1: lambda m: m.last},
    'weir_grad_scaler_update': {0: lambda m: m.scaled()},
    'weir_clip_grad_norm_': {1: lambda m: m.tensors(1), 2: lambda m: C.c_int(1)},
    'weir_clip_grad_value_': {0: lambda m: m.tensors(1), 1: lambda m: C.c_int(1)},
    'weir_loader_create': {1: lambda m: m.dataset()},
    'weir_from_dlpack': dlpack(''),
    'weir_from_dlpack_unversioned': dlpack('_unversioned'),
    'weir_graph_pool_end': {0: lambda m: m.pool_begun(), 1: lambda m: m.last},
    'weir_memory_export': {0: lambda m: m.block()},
    'weir_memory_unexport': {0: lambda m: m.exported()},
    'weir_memory_pause': {1: lambda m: m.tagged()},
    'weir_memory_resume': {1: lambda m: m.paused()},
    'weir_graph_capture_begin': {0: lambda m: m.about_to_capture()},
    'weir_graph_capture_end': {0: lambda m: m.capturing()},
    'weir_graph_replay': {0: lambda m: m.captured()},
    'weir_graph_memory': {1: lambda m: m.captured()},
    'weir_stream_new': {2: lambda m: C.c_int(0)},
    'weir_stream_from_native': {2: lambda m: m.made('weir_stream_native', m.handle('weir_stream *'))},
    'weir_event_elapsed_time': {1: lambda m: m.recorded(), 2: lambda m: m.recorded()},
    'weir_event_device': {1: lambda m: m.recorded()},
    'weir_free': {0: lambda m: m.block()},
    'weir_record_stream': {0: lambda m: m.block()},
    'weir_torch_free': {0: lambda m: m.block()},
    'weir_torch_record_stream': {0: lambda m: m.block(), 1: lambda m: m.made('weir_stream_native', m.handle('weir_stream *'))},
    'weir_torch_malloc': {1: lambda m: C.c_int(0), 2: lambda m: m.made('weir_stream_native', m.handle('weir_stream *'))},
    'weir_pinned_free': {0: lambda m: m.made('weir_pinned_malloc', C.c_size_t(64))},
    'weir_memory_stat': {2: lambda m: b'allocated_bytes.all.current'},
    'weir_pinned_stat': {1: lambda m: b'active_bytes.current'},
    'weir_npy_read': {1: lambda m: m.file('weir_npy_write', m.tensor())},
    'weir_safetensors_load': {1: lambda m: m.file('weir_safetensors_save', m.handle('weir_tensors *'))},
    'weir_tensors_load': {1: lambda m: m.file('weir_npy_write', m.tensor())},
    'weir_shared_fd': {1: lambda m: m.made('weir_share_memory', m.tensor())},
    'weir_shared_name': {2: lambda m: m.made('weir_share_memory', m.tensor())},
    'weir_shared_open': {1: lambda m: m.shared_fd()},
    'weir_shared_open_name': {1: lambda m: b'/proc/self/fd/%d' % m.shared_fd().value},
    'weir_npz_load': {1: lambda m: m.file('weir_npz_save', m.handle('weir_tensors *'))},
    'weir_pt_load': {1: lambda m: m.checkpoint()},
    'weir_safetensors_open': {1: lambda m: m.file('weir_safetensors_save', m.handle('weir_tensors *'))},
    'weir_safetensors_map_all': {1: lambda m: m.file('weir_safetensors_save', m.handle('weir_tensors *'))},
    'weir_module_load': {1: lambda m: m.file('weir_safetensors_save', m.handle('weir_tensors *'))},
    'weir_trace_start': {0: lambda m: m.path('t')},
    'weir_where': {1: lambda m: m.made('weir_to_dtype', m.tensor(), C.c_int(10))},
    **{'weir_' + name: {at: lambda m: m.index()} for name, at in (('index_select', 3), ('embedding', 1), ('embedding_renorm_', 1), ('one_hot', 1))},
    **{'weir_' + name + end: {at + (not end): lambda m: m.index(), at + 1 + (not end): lambda m: m.tensor((2, 1))}
       for name, at in (('index_add', 2), ('index_copy', 2), ('index_add_alpha', 2)) for end in ('', '_')},
    **{'weir_index_fill' + end: {2 + (not end): lambda m: m.index()} for end in ('', '_')},
    'weir_gather': {3: lambda m: m.index((1, 1))},
    **{'weir_' + name + end: {2 + (not end): lambda m: m.index((1, 1))} for name in ('scatter', 'scatter_value', 'scatter_add', 'scatter_reduce') for end in ('', '_')},
    'weir_embedding_dense_backward': {1: lambda m: m.tensor((1, 2)), 2: lambda m: m.index()},
    'weir_nonzero_tuple': {3: lambda m: m.tensor((2,))},
    'weir_embedding_with': {1: lambda m: m.index(), 3: lambda m: m.room((C.c_char * 64)())},
    'weir_embedding_bag': {1: lambda m: m.index((1, 1)), 3: lambda m: None, 4: lambda m: None, 5: lambda m: m.room((C.c_char * 64)())},
    'weir_diagonal_scatter': {2: lambda m: m.tensor((2,)), 4: lambda m: C.c_int(0), 5: lambda m: C.c_int(1), 3: lambda m: C.c_int64(0)},
    'weir_select_scatter': {2: lambda m: m.tensor((2,))},
    'weir_slice_scatter': {2: lambda m: m.tensor((2, 0)), 4: lambda m: C.c_int64(0), 5: lambda m: C.c_int64(0)},
    'weir_take_along_dim': {2: lambda m: m.index((1, 1))},
    'weir_take': {2: lambda m: m.index()},
    **{'weir_put' + end: {1 + (not end): lambda m: m.index(), 2 + (not end): lambda m: m.tensor((1,))} for end in ('', '_')},
    'weir_index': {2: lambda m: m.indices()},
    **{'weir_index_put' + end: {1 + (not end): lambda m: m.indices(), 3 + (not end): lambda m: m.tensor(())} for end in ('', '_')},
    **{'weir_' + name + end: {1 + (not end): lambda m: m.mask(), 2 + (not end): lambda m: m.tensor(())} for name in ('masked_fill_tensor',)
       for end in ('', '_')},
    **{'weir_' + name + end: {1 + (not end): lambda m: m.mask()} for name in ('masked_fill', 'masked_scatter') for end in ('', '_')},
    'weir_masked_select': {2: lambda m: m.mask()},
    'weir_repeat_interleave_tensor': {2: lambda m: m.index()},
    'weir_clamp': {2: lambda m: m.room(Scalar(5, 1, 0, 0)), 3: lambda m: m.room(Scalar(5, 2, 0, 0))},
    'weir_det': {1: lambda m: m.matrix()}, 'weir_slogdet': {2: lambda m: m.matrix()}, 'weir_inv': {1: lambda m: m.matrix()},
    'weir_solve': {1: lambda m: m.matrix()}, 'weir_cholesky': {1: lambda m: m.matrix()},
    'weir_cholesky_solve': {2: lambda m: m.matrix()}, 'weir_cholesky_inverse': {1: lambda m: m.matrix()},
    'weir_lu_factor': {2: lambda m: m.matrix(), 3: lambda m: C.c_bool(True)}, 'weir_lu': {3: lambda m: m.matrix(), 4: lambda m: C.c_bool(True)},
    'weir_lu_unpack': {3: lambda m: m.matrix(), 4: lambda m: m.pivots()}, 'weir_lu_solve': {1: lambda m: m.matrix(), 2: lambda m: m.pivots()},
    'weir_cond': {1: lambda m: m.matrix(), 2: lambda m: b'fro'},
    'weir_qr': {3: lambda m: b'reduced'},
    'weir_matrix_norm': {2: lambda m: b'fro', 3: lambda m: m.room((C.c_int * 2)(0, 1))},
    'weir_addmv': {1: lambda m: m.tensor((2,)), 3: lambda m: m.tensor((2,))},
    'weir_addr': {2: lambda m: m.tensor((2,)), 3: lambda m: m.tensor((2,)), 4: lambda m: Scalar(5, 1, 0, 0), 5: lambda m: Scalar(5, 1, 0, 0)},
    'weir_addbmm': {1: lambda m: m.tensor((2, 2))},
    'weir_cross': {3: lambda m: C.c_int(2)},
    'weir_einsum': {1: lambda m: b'ij', 2: lambda m: m.tensors(1)},
    'weir_multi_dot': {1: lambda m: m.tensors(2), 2: lambda m: C.c_int(2)},
    'weir_tensordot_dims': {3: lambda m: m.room((C.c_int * 1)(1)), 4: lambda m: m.room((C.c_int * 1)(0))},
    'weir_multihead_attention': {2: lambda m: m.made('weir_module_multihead_attention', C.c_int64(2), C.c_int64(1), None)},
    'weir_module_transformer_encoder_layer': {1: lambda m: C.c_int64(2), 2: lambda m: C.c_int64(1), 3: lambda m: None},
    'weir_module_transformer_encoder': {1: lambda m: m.made('weir_module_transformer_encoder_layer', C.c_int64(2), C.c_int64(1), None)},
    'weir_transformer_encode': {1: lambda m: m.made('weir_module_transformer_encoder_layer', C.c_int64(2), C.c_int64(1), None)},
    'weir_module_transformer_decoder_layer': {1: lambda m: C.c_int64(2), 2: lambda m: C.c_int64(1), 3: lambda m: None},
    'weir_module_transformer_decoder': {1: lambda m: m.made('weir_module_transformer_decoder_layer', C.c_int64(2), C.c_int64(1), None)},
    'weir_transformer_decode': {1: lambda m: m.made('weir_module_transformer_decoder_layer', C.c_int64(2), C.c_int64(1), None), 4: lambda m: None},
    'weir_module_transformer': {1: lambda m: C.c_int64(2), 2: lambda m: C.c_int64(1), 5: lambda m: None},
    'weir_transformer': {1: lambda m: m.made('weir_module_transformer', C.c_int64(2), C.c_int64(1), C.c_int64(1), C.c_int64(1), None), 4: lambda m: None, 5: lambda m: None},
    'weir_recurrent': {3: lambda m: m.made('weir_module_lstm', C.c_int64(2), C.c_int64(2), None), 5: lambda m: m.tensor((1, 2)), 6: lambda m: m.tensor((1, 2))},
    'weir_clamp_': {1: lambda m: m.room(Scalar(5, 1, 0, 0)), 2: lambda m: m.room(Scalar(5, 2, 0, 0))},
    'weir_gelu': {2: lambda m: b'none'},
    'weir_module_gelu': {1: lambda m: b'tanh'},
    'weir_gelu_': {1: lambda m: b'tanh'},
    'weir_div_rounding': {3: lambda m: b'trunc'},
    'weir_div_rounding_scalar': {3: lambda m: b'floor'},
    'weir_div_rounding_': {2: lambda m: b'floor'},
    'weir_div_rounding_scalar_': {2: lambda m: b'trunc'},
    'weir_prelu': {2: lambda m: m.tensor((1,))},
    'weir_mv': {2: lambda m: m.tensor((2,))},
    'weir_conv2d': {3: lambda m: m.tensor((1,))},
    'weir_max_pool2d': {2: pool_options},
    'weir_module_max_pool2d': {1: pool_options},
    **{'weir_module_%s_pool%dd' % (k, n): {1: pool_3d} for k in ('avg', 'max') for n in (1, 2, 3) if (k, n) != ('max', 2)},
    **{'weir_conv%s%dd' % (k, n): {3: lambda m: m.tensor((1,)), 4: conv_options} for k in ('', '_transpose') for n in (1, 2, 3) if (k, n) != ('', 2)},
    'weir_interpolate': {2: interpolation},
    **{'weir_' + n: {2: lambda m: m.made('weir_to_dtype', m.tensor((2,)), C.c_int(5)), 3: class_options} for n in ('nll_loss', 'cross_entropy')},
    'weir_binary_cross_entropy': {i: lambda m: m.made('weir_zeros_like', m.tensor(), None) for i in (1, 2, 3)},
    'weir_cosine_embedding_loss': {3: lambda m: m.tensor((2,))},
    **{'weir_module_conv%s%dd' % (k, n): {3: lambda m: m.room((C.c_int64 * 3)(1, 1, 1)), 4: lambda m: None} for k in ('', '_transpose') for n in (1, 2, 3) if (k, n) != ('', 2)},
    **{'weir_module_%s_pad%dd' % (k, n): {1: lambda m: m.room((C.c_int64 * 6)())} for k in ('constant', 'reflection', 'replication', 'circular', 'zero') for n in (1, 2, 3)},
    **{'weir_module_' + k: {1: interpolation} for k in ('upsample', 'upsampling_nearest2d', 'upsampling_bilinear2d')},
    **{'weir_module_%s_loss' % k: {1: lambda m: m.room((C.c_int64 * 5)())} for k in ('nll', 'cross_entropy')},
    'weir_module_embedding_bag': {3: lambda m: None},
    'weir_module_list': {1: lambda m: m.modules(1), 2: lambda m: C.c_size_t(1)},
    'weir_avg_pool1d': {2: pool_3d}, 'weir_avg_pool2d': {2: pool_3d}, 'weir_avg_pool3d': {2: pool_3d},
    'weir_max_pool1d': {2: pool_3d}, 'weir_max_pool3d': {2: pool_3d},
    'weir_max_pool1d_with_indices': {3: pool_3d}, 'weir_max_pool2d_with_indices': {3: pool_3d}, 'weir_max_pool3d_with_indices': {3: pool_3d},
    'weir_batch_norm': {2: lambda m: m.tensor((1,)), 3: lambda m: m.tensor((1,)), 4: lambda m: m.tensor((1,)), 5: lambda m: m.tensor((1,)), 6: batch_norm},
    'weir_instance_norm': {2: lambda m: m.tensor((1,)), 3: lambda m: m.tensor((1,)), 4: lambda m: m.tensor((1,)), 5: lambda m: m.tensor((1,)), 6: batch_norm},
    'weir_group_norm': {3: lambda m: m.tensor((2,)), 4: lambda m: m.tensor((2,))},
    'weir_cat': {1: lambda m: m.tensors(1)},
    'weir_stack': {1: lambda m: m.tensors(1)},
    'weir_parallel_gather': {1: lambda m: m.tensors(1)},
    'weir_module_new': {1: lambda m: m.room((C.c_char_p * 5)(b'Net'))},
    'weir_module_register_hook': {2: lambda m: C.c_int(0), 3: lambda m: m.hook(), 5: lambda m: None},
    'weir_module_call_many': {2: lambda m: m.tensors(1)},
    'weir_summary': {2: lambda m: m.tensors(1)},
    'weir_module_sequential': {1: lambda m: m.modules(1), 2: lambda m: C.c_size_t(1)},
    'weir_module_append': {0: lambda m: m.made('weir_module_sequential', None, C.c_size_t(0))},
    'weir_module_drop': {0: lambda m: m.modules(1)},
    'weir_scope_made': {0: lambda m: m.tensors(1)},
    'weir_keep': {0: lambda m: m.in_scope()},
    'weir_tensor_drop': {0: lambda m: m.tensors(1)},
    'weir_backward': {0: lambda m: m.made('weir_exp', (m.result(), m.leaf)[1])},
    'weir_grad': {1: lambda m: m.room((C.c_void_p * 1)(m.result().value)), 3: lambda m: m.room((C.c_void_p * 1)(m.leaf.value))},
    'weir_retain_grad': {0: lambda m: m.result()},
    'weir_register_hook': {1: lambda m: m.result(), 2: lambda m: m.hook()},
    'weir_tensor_set_grad': {0: lambda m: (m.result(), m.leaf)[1]},
    'weir_memory_last_oom': {0: lambda m: m.out_of_memory()},
    'weir_replicate': {2: lambda m: m.devices(1)},
    'weir_parallel_scatter': {3: lambda m: m.devices(1)},
    'weir_parallel_apply': {1: lambda m: m.modules(1), 2: lambda m: m.tensors(1), 4: lambda m: m.devices(1)},
}


# Of integers: all their tensors but a result's.
for name in ('bitwise_not', 'bitwise_and', 'bitwise_or', 'bitwise_xor', 'bitwise_left_shift', 'bitwise_right_shift', 'gcd', 'lcm'):
    for f in ('weir_%s', 'weir_%s_scalar', 'weir_scalar_%s', 'weir_%s_', 'weir_%s_scalar_'):
        places = {'weir_%s_': (0, 1), 'weir_%s_scalar_': (0,), 'weir_scalar_%s': (2,), 'weir_%s_scalar': (1,)}.get(f, (1, 2))
        whole = lambda m: m.made('weir_to_dtype', m.tensor(), C.c_int(5))
        GOOD[f % name] = {place: whole for place in places}


def prototypes(source):
    """[(result, name, [types])]; a type that is a function has the name 'function *'."""
    text = subprocess.run(['cc', '-E', '-P', '-I' + source, '-x', 'c', '-'], input='#include "core/weir.h"\n', text=True,
                          stdout=subprocess.PIPE, check=True).stdout
    found = []
    for declaration in re.findall(r'__attribute__\(\(visibility\("default"\)\)\)([^;]*);', text):
        declaration = ' '.join(declaration.split())
        declaration = re.sub(r'__attribute__\(\(.*?\)\)\)? ?', '', declaration)
        m = re.match(r'(.*?[ *])(weir_\w+)\((.*)\)$', declaration)
        if not m or '...' in m.group(3):
            continue
        arguments = re.sub(r'\w+ \(\*\w+\)\([^)]*\)', 'function *f', m.group(3))
        types = []
        for argument in [] if arguments == 'void' else arguments.split(','):
            argument = re.sub(r'\[\w*\]', ' *', argument.strip())
            t = re.sub(r'\b(?!(?:int|unsigned|double|_Bool|void|char)\b)\w+( \*)?$', r'\1', argument).strip()
            types.append(re.sub(r'^const ', '', t.replace(' *', '*').replace('*', ' *').replace('* *', '**')).replace(' const', '').replace('* *', '**'))
        found.append((m.group(1).strip(), m.group(2), types))
    return found


class Maker:
    """Good arguments."""

    def __init__(self, lib, function):
        self.lib, self.function, self.keep = lib, function, []

    def room(self, value):
        self.keep.append(value)
        return C.cast(C.byref(value), C.c_void_p)

    def tensor(self, sizes=None):
        sizes = SHAPES.get(self.function, (2, 2)) if sizes is None else sizes
        out, values = C.c_void_p(), (C.c_float * 16)(*range(16))
        shape = Shape(len(sizes), (C.c_int64 * 8)(*sizes))
        self.must(self.lib.weir_tensor_from(C.byref(out), values, 7, shape, None))
        return out

    def matrix(self):
        return self.made('weir_eye', C.c_int64(2), C.c_int64(2), None)

    def must(self, status):
        if status:
            raise SystemExit('preparing %s: %s' % (self.function, self.lib.weir_error_message().decode()))

    def result(self):
        """The sum of a leaf that requires a gradient."""
        self.leaf = self.tensor()
        self.must(self.lib.weir_requires_grad_(self.leaf, True))
        return self.made('weir_sum', self.leaf)

    def hook(self):
        call = C.CFUNCTYPE(C.c_int, C.c_void_p, C.c_void_p, C.c_void_p)(lambda out, grad, context: OK)
        self.keep.append(call)
        return C.cast(call, C.c_void_p)

    def tensors(self, count):
        return self.room((C.c_void_p * 8)(*(self.tensor().value for _ in range(count))))

    def modules(self, count):
        return self.room((C.c_void_p * 8)(*(self.handle('weir_module *').value for _ in range(count))))

    def devices(self, count):
        return self.room((Device * count)(*[CUDA] * count))

    def index(self, sizes=(1,)):
        """0, int64."""
        return self.made('weir_to_dtype', self.made('weir_zeros_like', self.tensor(sizes), None), C.c_int(5))

    def pivots(self):
        """1 and 1, int32."""
        ones = self.made('weir_ones_like', self.tensor((2,)), None)
        return self.made('weir_to_dtype', ones, C.c_int(4))

    def indices(self):
        return self.room((C.c_void_p * 1)(self.index()))

    def mask(self):
        return self.made('weir_to_dtype', self.tensor(), C.c_int(10))

    def dataset(self):
        one, get = Dataset.LENGTH(lambda user: 1), Dataset.GET(lambda out, user, index: EINVAL)
        self.keep += [one, get]
        return self.room(Dataset(one, get, None, None))

    def path(self, name):
        return ('%s-%d' % (name, os.getpid())).encode()

    def file(self, write, what):
        path = self.path('file')
        self.must(getattr(self.lib, write)(path, what))
        return path

    def shared_fd(self):
        fd = C.c_int()
        self.must(self.lib.weir_shared_fd(C.byref(fd), self.made('weir_share_memory', self.tensor())))
        return fd

    def in_scope(self):
        """Room for a tensor, and an open scope."""
        self.lib.weir_scope_enter(self.room((C.c_char * 4096)()), None)
        return self.room((C.c_void_p * 1)(None))

    def checkpoint(self):
        """A file of torch.save({})."""
        path = self.path('file')
        with zipfile.ZipFile(path.decode(), 'w') as z:
            z.writestr('archive/data.pkl', b'\x80\x02}.')
        return path

    def opened(self):
        """A .safetensors file with a tensor 'x'."""
        names = self.made('weir_tensors_create')
        self.must(self.lib.weir_tensors_put(names, b'x', self.tensor((2, 2))))
        return self.made('weir_safetensors_open', self.file('weir_safetensors_save', names))

    def block(self):
        return self.made('weir_malloc', C.c_size_t(64), CUDA, None)

    def exported(self):
        block = self.block()
        self.must(self.lib.weir_memory_export(block))
        return block

    def tagged(self):
        self.must(self.lib.weir_memory_set_tag(b'tag'))
        self.block()
        return b'tag'

    def paused(self):
        self.must(self.lib.weir_memory_pause(CUDA, self.tagged(), False))
        return b'tag'

    def pool_begun(self):
        pool, self.last = self.handle('weir_graph_pool *'), self.handle('weir_stream *')
        self.must(self.lib.weir_graph_pool_begin(pool, self.last))
        return pool

    def about_to_capture(self):
        self.must(self.lib.weir_set_current_stream(self.handle('weir_stream *')))
        return self.handle('weir_graph *')

    def capturing(self):
        graph = self.about_to_capture()
        self.must(self.lib.weir_graph_capture_begin(graph, None, 0))
        return graph

    def captured(self):
        graph = self.capturing()
        self.must(self.lib.weir_graph_capture_end(graph))
        return graph

    def recorded(self):
        event = self.made('weir_event_new', self.room((C.c_bool * 2)(True, False)))
        self.must(self.lib.weir_event_record(event, None))
        self.must(self.lib.weir_event_synchronize(event))
        return event

    def out_of_memory(self):
        if self.lib.weir_malloc(C.byref(C.c_void_p()), C.c_size_t(1 << 50), CUDA, None) != EOOM:
            raise SystemExit('no device holds 1 PiB')
        return self.room((C.c_char * 16384)())

    def made(self, name, *arguments):
        out = C.c_void_p()
        self.must(getattr(self.lib, name)(C.byref(out), *arguments))
        return out

    def scaler(self):
        """One that has scaled something."""
        out = self.made('weir_grad_scaler_new', None)
        self.made('weir_grad_scaler_scale', out, self.tensor(()))
        return out

    def scaled(self):
        """A scaler whose optimizer, self.last, has been unscaled."""
        out, p = self.scaler(), self.tensor()
        self.must(self.lib.weir_requires_grad_(p, True))
        self.must(self.lib.weir_tensor_set_grad(p, self.tensor()))
        self.last = self.made('weir_optimizer_create', 0, self.room((C.c_void_p * 1)(p.value)), 1, None)
        self.must(self.lib.weir_grad_scaler_unscale_(out, self.last))
        return out

    def handle(self, of):
        if of == 'weir_tensor *':
            return self.tensor()
        if of == 'weir_stream *':
            return self.made('weir_stream_create', CUDA)
        if of == 'weir_module *':
            return self.made('weir_module_relu')
        if of == 'weir_tensors *':
            return self.made('weir_tensors_create')
        if of == 'weir_safetensors *':
            return self.opened()
        if of == 'weir_event *':
            return self.made('weir_event_new', None)
        if of == 'weir_graph_pool *':
            return self.made('weir_graph_pool_create', CUDA)
        if of == 'weir_graph *':
            return self.made('weir_graph_new')
        if of == 'weir_generator *':
            return self.made('weir_generator_new', CPU)
        if of == 'weir_schedule *':
            return self.made('weir_schedule_create', self.handle('weir_optimizer *'), 4, None)
        if of == 'weir_optimizer *':
            return self.made('weir_optimizer_create', 0, self.tensors(1), 1, None)
        if of == 'weir_grad_scaler *':
            return self.scaler()
        if of == 'weir_loader *':
            return self.made('weir_loader_create', self.dataset(), None)
        if of == 'weir_loader_iter *':
            return self.made('weir_loader_begin', self.tensor_loader())
        return None

    def tensor_loader(self):
        dataset = Dataset()
        self.must(self.lib.weir_tensor_dataset(self.room(dataset), self.tensors(1), 1))
        return self.made('weir_loader_create', self.room(dataset), None)

    def argument(self, of, at):
        if at in GOOD.get(self.function, ()):
            return GOOD[self.function][at](self)
        if of == 'weir_shape':
            return Shape(2, (C.c_int64 * 8)(2, 2))
        if of == 'weir_device':
            return CUDA if re.search('mem|malloc|pinned|stream|cuda|graph|peer|device|replicate|parallel', self.function) else CPU
        if of == 'weir_scalar':
            return Scalar(5, 1, 0, 0)
        if of == 'weir_generator_state':
            return State(1, 0)
        if of == 'char *':
            return C.c_char_p(b'x')
        if of == 'function *' or of.endswith('_callback'):
            self.keep.append(C.CFUNCTYPE(C.c_int)(lambda: 0))
            return self.keep[-1]
        if of in CTYPES:
            return CTYPES[of](VALUES[of])
        if not of.endswith('*'):
            return C.c_int(VALUES.get(of, 0))
        handle = self.handle(of)
        if handle is not None:
            return handle
        return self.room((C.c_char * 4096)(*b'\xa5' * (8 if of.endswith('**') else 0)))


def pointer(of):
    return of.endswith(('*', '_callback'))


def call(library, prototype, at):
    """In a child: whether the call was as it must be; at None: all its arguments are good."""
    result, name, types = prototype
    lib = C.CDLL(library)
    lib.weir_error_message.restype = C.c_char_p
    make = Maker(lib, name)
    arguments = [make.argument(t, i) for i, t in enumerate(types)]
    if at is not None:
        arguments[at] = C.c_void_p(None)
    f = getattr(lib, name)
    f.restype = {'weir_shape': Shape, 'weir_generator_state': State, 'weir_device': Device}.get(result, C.c_int)
    status = f(*arguments)
    if result != 'weir_status' or status == OK:
        return 0
    said = lib.weir_error_message().decode()
    if (name, at) in OTHER:
        return 0
    if at is None:
        print('%s: good arguments: status %d: %s' % (name, status, said), flush=True)
        return 1
    if status != EINVAL or not said.startswith(name + ': '):
        print('%s: argument %d NULL: status %d: %s' % (name, at + 1, status, said), flush=True)
        return 1
    if at and types[0] in ('weir_tensor **', 'weir_module **') and name not in SEVERAL:
        if C.cast(arguments[0], C.POINTER(C.c_void_p))[0]:
            print('%s: argument %d NULL: *out is not NULL after the failure' % (name, at + 1), flush=True)
            return 1
    return 0


def in_child(library, prototype, places, quiet):
    """How a process ends that makes these calls, as of waitpid()."""
    pid = os.fork()
    if not pid:
        signal.alarm(600)  # ends what hangs
        if quiet:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os._exit(any([call(library, prototype, at) for at in places]))
    return os.waitpid(pid, 0)[1]


def main():
    library, source = sys.argv[1:3]
    calls, bad = 0, 0
    _opened = C.CDLL(library)  # once, for all processes to come
    for p in prototypes(source):
        if len(sys.argv) > 3 and p[1] != sys.argv[3]:
            continue
        nulls = [i for i, t in enumerate(p[2]) if pointer(t) and not (i and p[1] in NOT_GOOD)]
        places = ([None] if nulls and p[1] not in NOT_GOOD else []) + nulls
        calls += len(places)
        if not in_child(library, p, places, True):
            continue
        for at in places:
            status = in_child(library, p, [at], False)
            if os.WIFSIGNALED(status):
                what = 'good arguments' if at is None else 'argument %d (%s) NULL' % (at + 1, p[2][at])
                print('%s: %s: signal %d' % (p[1], what, os.WTERMSIG(status)), flush=True)
            bad += status != 0
    print('%d calls of %d functions, %d bad' % (calls, len(prototypes(source)), bad))
    return bad > 0


if __name__ == '__main__':
    sys.exit(main())
