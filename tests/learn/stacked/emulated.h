// A GPU's block of threads on a CPU, for testing kernels where there is no GPU: every thread is a context of its own,
// and whoever waits for others lets them run. Shared memory is filled with ones (NaN) before each block.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ucontext.h>
#include <vector>

#define EMULATED
#define __device__
#define __global__
#define __forceinline__ inline
#define __launch_bounds__(...)

struct alignas(8) float2 { float x, y; };
struct alignas(8) uint2 { unsigned x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
struct Index { int x = 0, y = 0, z = 0; };
static Index threadIdx, blockIdx, gridDim;
inline int min(int a, int b) { return a < b ? a : b; }
inline int max(int a, int b) { return a > b ? a : b; }
inline float __uint_as_float(unsigned bits) { float f; std::memcpy(&f, &bits, 4); return f; }

static char* emulated_shared;
#define SHARED_MEMORY char* const shared = emulated_shared
typedef uintptr_t Address;
inline Address address_of(const void* p) { return (Address)p; }

struct Meeting { int arrived = 0, turn = 0; };
struct Lane { unsigned a[4], b[2]; Address at; float value; };
static const int STACK = 1 << 16;
static std::vector<ucontext_t> contexts;
static std::vector<char> done;
static std::vector<Meeting> warps;
static std::vector<Lane> given[2];
static std::vector<int> turns;
static Meeting all;
static ucontext_t scheduler;
static int current;

inline void let_others_run() {
    const int me = current;
    swapcontext(&contexts[me], &scheduler);
}
inline void meet(Meeting& m, int n) {
    const int turn = m.turn;
    if (++m.arrived == n) m.arrived = 0, m.turn++;
    else while (m.turn == turn) let_others_run();
}
inline void __syncthreads() { meet(all, (int)contexts.size()); }

// What the lanes of my warp gave this time.
inline const Lane* exchange(const Lane& mine) {
    std::vector<Lane>& slots = given[turns[current]++ % 2];
    slots[current] = mine;
    const int warp = current / 32;
    meet(warps[warp], 32);
    return &slots[warp * 32];
}
inline unsigned short half_at(Address row, int column) {
    unsigned short v;
    std::memcpy(&v, (const char*)row + 2 * column, 2);
    return v;
}
inline void load_matrices(unsigned (&r)[4], Address at) {
    Lane mine{};
    mine.at = at;
    const Lane* lanes = exchange(mine);
    const int lane = current % 32;
    for (int m = 0; m < 4; m++) {
        const Address row = lanes[m * 8 + lane / 4].at;
        r[m] = half_at(row, lane % 4 * 2) | (unsigned)half_at(row, lane % 4 * 2 + 1) << 16;
    }
}
inline void load_turned(unsigned (&r)[4], Address at) {
    Lane mine{};
    mine.at = at;
    const Lane* lanes = exchange(mine);
    const int lane = current % 32;
    for (int m = 0; m < 4; m++)
        r[m] = half_at(lanes[m * 8 + lane % 4 * 2].at, lane / 4) |
               (unsigned)half_at(lanes[m * 8 + lane % 4 * 2 + 1].at, lane / 4) << 16;
}
inline float half_of(unsigned both, int which) { return __uint_as_float(which ? both & 0xffff0000u : both << 16); }
inline void multiply(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    Lane mine{};
    std::memcpy(mine.a, a, sizeof mine.a);
    mine.b[0] = b0, mine.b[1] = b1;
    const Lane* lanes = exchange(mine);
    const int lane = current % 32;
    for (int r = 0; r < 4; r++) {
        const int row = lane / 4 + r / 2 * 8, column = lane % 4 * 2 + r % 2;
        for (int k = 0; k < 16; k++) {
            const Lane& left = lanes[row % 8 * 4 + k % 8 / 2];
            const Lane& right = lanes[column * 4 + k % 8 / 2];
            d[r] += half_of(left.a[row / 8 + k / 8 * 2], k % 2) * half_of(right.b[k / 8], k % 2);
        }
    }
}
inline float from_lane(float value, int mask) {
    Lane mine{};
    mine.value = value;
    return exchange(mine)[current % 32 ^ mask].value;
}
inline unsigned rounded(float f) {
    unsigned u;
    std::memcpy(&u, &f, 4);
    if (std::isnan(f)) return 0x7fff;
    return (u + 0x7fff + (u >> 16 & 1)) >> 16;
}
inline unsigned packed(float low, float high) { return rounded(low) | rounded(high) << 16; }

static void (*body)();
inline void run_thread() {
    body();
    done[current] = 1;
    for (;;) let_others_run();
}
inline void play(void (*what)(), int n_threads, Index grid, int shared_bytes) {
    body = what, gridDim = grid;
    std::vector<char> memory(shared_bytes + 16), stacks((size_t)n_threads * STACK);
    emulated_shared = (char*)(((uintptr_t)memory.data() + 15) / 16 * 16);
    for (int z = 0; z < grid.z; z++)
      for (int y = 0; y < grid.y; y++)
        for (int x = 0; x < grid.x; x++) {
            std::memset(emulated_shared, 0xff, shared_bytes);
            blockIdx = {x, y, z};
            contexts.assign(n_threads, {}), done.assign(n_threads, 0), turns.assign(n_threads, 0);
            warps.assign(n_threads / 32, {}), all = {};
            for (auto& slots : given) slots.assign(n_threads, {});
            for (int t = 0; t < n_threads; t++) {
                getcontext(&contexts[t]);
                contexts[t].uc_stack = {&stacks[(size_t)t * STACK], 0, STACK};
                makecontext(&contexts[t], run_thread, 0);
            }
            for (bool busy = true; busy;) {
                busy = false;
                for (int t = 0; t < n_threads; t++)
                    if (!done[t]) {
                        busy = true, current = t, threadIdx = {t, 0, 0};
                        swapcontext(&scheduler, &contexts[t]);
                    }
            }
        }
}

// extern "C" function `launch_NAME` of (arguments, grid, bytes of shared memory)
#define ENTRY(NAME, Arguments)                                                                      \
    static Arguments given_##NAME;                                                                  \
    static void body_##NAME() { NAME(given_##NAME); }                                               \
    extern "C" void launch_##NAME(const Arguments* a, int x, int y, int z, int shared_bytes) {   \
        given_##NAME = *a;                                                                          \
        play(body_##NAME, THREADS, {x, y, z}, shared_bytes);                                   \
    }
