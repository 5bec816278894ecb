/* shapes.h: the shapes of a model and of findings. */
#ifndef WEIR_REPORTS_WHOLE_SHAPES_H
#define WEIR_REPORTS_WHOLE_SHAPES_H

#include "reports/whole/shape.h"

/* Of a char *: an element of a list of texts. */
extern const wr_shape wr_text_shape;

/* Of a wr_model: all but its path and `top`. */
extern const wr_shape wr_model_shape;

/* Of a wr_findings that has its rules: all but these, the limits, and what follows from them. */
extern const wr_shape wr_findings_shape;

#endif
