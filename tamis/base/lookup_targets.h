// For the sources of lookups, before Highway: on the first processors with AVX-512 (Skylake,
// Cascade Lake) vectors of 512 bits lower the clock of all that runs beside them, and a lookup
// would take a tenth off its caller's speed. Later ones (AVX3_DL) are chosen.
//
// Highway chooses in an inline function that says something else in files with other targets. Where
// the compiler inlines nothing, the linker keeps one of them for all files, and it chooses what
// these have not. So without optimization nothing is left out.
#pragma once

#ifdef __OPTIMIZE__
#define HWY_DISABLED_TARGETS HWY_AVX3
#endif
