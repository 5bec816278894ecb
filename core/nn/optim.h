/* optim.h: what a schedule does with an optimizer, in addition to the public functions. */
#ifndef WEIR_NN_OPTIM_H
#define WEIR_NN_OPTIM_H

#include "core/weir/optim.h"

/* A group's lr before its first schedule: torch's initial_lr. Set by the first that asks, and by
 * one that brings its own: first, if that is not NAN. */
double optimizer_initial_rate(weir_optimizer *o, int group, double first);
/* Sets a group's lr, and its momentum, or beta1, if that is not NAN. As torch's schedules, it
 * refuses no value. */
void optimizer_set_rate(weir_optimizer *o, int group, double lr, double momentum);

/* Parameter number i of all groups (borrowed); NULL: there are fewer. */
weir_tensor *optimizer_parameter(const weir_optimizer *o, int i);

/* Puts a number of a state there, as a tensor without dimensions. */
weir_status optim_put_number(weir_tensors *set, const char *name, double value, weir_dtype dtype);

#endif
