// To be included before Highway by sources of filter lookups. It excludes AVX-512 on the first
// processors that have it (Skylake, Cascade Lake): there, vectors of 512 bits lower the clock of
// all code on the core, and a lookup would slow its caller by a tenth. On later processors
// (AVX3_DL) AVX-512 is used.
//
// Highway chooses the target in an inline function, which differs between files that exclude
// different targets. Without optimization the compiler does not inline it: the linker then keeps
// one copy for all files, which may choose a target that a file does not have. So nothing is
// excluded without optimization.
#pragma once

#ifdef __OPTIMIZE__
#define HWY_DISABLED_TARGETS HWY_AVX3
#endif
