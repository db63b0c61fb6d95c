/* palette.h - the colours of the pictures, light and dark.
 *
 * Eight colours that people with each kind of colour-blindness tell apart, each
 * with a contrast of 3 or more against the ground (WCAG 2.2, 1.4.11). Their
 * measure is tests/sim/pages.py. */
#ifndef STAGGER_CHART_PALETTE_H
#define STAGGER_CHART_PALETTE_H

#include "chart/text_buffer.h"

/* The style of <svg class="stg">: by what the reader prefers, and light when
 * printed. */
void stg_palette_css(stg_text_buffer *buffer);

/* The same for the rest of a page. */
void stg_palette_page_css(stg_text_buffer *buffer);

#endif
