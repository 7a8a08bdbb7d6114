// A 3 x 3 convolution of K models with the batch norms around it folded in, forwards or backwards.
//
// Forwards: while an image is loaded, the norm, residual and ReLU before the convolution are applied to it; while the
// result is written, its sums are taken for the norm after it. Backwards: while the gradient is loaded, it is taken
// through the norm after the convolution; the gradients of input and weights come from the same image in shared memory;
// while the former is written, it passes the ReLU before and its sums are taken. So every activation is read and
// written once where it is needed, and no kernel does nothing but a norm.
//
// Activations are (K, batch, side, side, channels) in bfloat16, weights (K, row, column, in, out). A block of threads
// belongs to one member and does some of its images, whole images at a time, with a border of zeros. Nothing is added
// up by atomics: every block writes its sums to a place of its own, whoever reads them adds in a fixed order.
//
// Compiled behind common.cuh for one shape: CI (fewer than 16 are an image, filled up), CO, SIDE, STRIDE, IMAGES (at a
// time), SLICE (channels of the input that a block has), WARPS, BLOCKS (to a multiprocessor), and BACKWARD or not.

constexpr int OUT = SIDE / STRIDE;
// From one row of pixels to the next, and from one image to the next: the border at a row's end is that at the next one's
// beginning.
constexpr int IN_SIDE = SIDE + 1, OUT_SIDE = OUT + 1;
constexpr int IN_IMAGE = (SIDE + 2) * IN_SIDE + 1, OUT_IMAGE = (OUT + 2) * OUT_SIDE + 1;
// Bytes from one row of channels to the next: 16 more than it has, so that eight rows lie in different banks.
constexpr int IN_ROW = 2 * SLICE + 16, OUT_ROW = 2 * CO + 16;
constexpr int IN_BYTES = IMAGES * IN_IMAGE * IN_ROW, OUT_BYTES = IMAGES * OUT_IMAGE * OUT_ROW;
constexpr int WEIGHT_BYTES = 9 * SLICE * OUT_ROW;

// Where pixel `i` (of IMAGES images without border) of a tile lies, in rows.
template <int S>
__device__ __forceinline__ int bordered(int i) {
    const int image = IMAGES == 1 ? 0 : i / (S * S), at = IMAGES == 1 ? i : i % (S * S);
    return image * ((S + 2) * (S + 1) + 1) + (at / S + 1) * (S + 1) + at % S + 1;
}

// What a thread loads of IMAGES images of side S with C channels: eight channels of a pixel in every round.
template <int S, int C>
struct Share {
    static constexpr int EIGHTS = C / 8, LINES = THREADS / EIGHTS / S, ROUNDS = IMAGES * S / LINES;  // lines of pixels a round
    static_assert(LINES * EIGHTS * S == THREADS && LINES * ROUNDS == IMAGES * S && ROUNDS > 0, "whole rounds");
    const int c = threadIdx.x % EIGHTS * 8, line = threadIdx.x / EIGHTS / S, column = threadIdx.x / EIGHTS % S;

    __device__ __forceinline__ int pixel(int round) const { return (line + round * LINES) * S + column; }
    __device__ __forceinline__ int image(int round) const { return IMAGES == 1 ? 0 : (line + round * LINES) / S; }
    __device__ __forceinline__ int bordered(int round) const {
        const int within = IMAGES == 1 ? line + round * LINES : (line + round * LINES) % S;
        return image(round) * ((S + 2) * (S + 1) + 1) + (within + 1) * (S + 1) + column + 1;
    }
};

// The input of IMAGES images, through norm, residual and ReLU where there are any; the first `own` of them count, the others
// are zeros, and those behind `here` are not the block's.
__device__ __forceinline__ void load_input(
    char* tile, const bf16* source, const bf16* residual, bf16* joined, const Norm<SLICE>* norm, bool relu, int own, int here
) {
    if constexpr (CI < 16) {
        for (int i = threadIdx.x; i < IMAGES * SIDE * SIDE; i += THREADS) {
            unsigned r = 0, g = 0, b = 0;
            if (i / (SIDE * SIDE) < own) r = source[i * CI], g = CI > 1 ? source[i * CI + 1] : 0, b = CI > 2 ? source[i * CI + 2] : 0;
            *(uint2*)(tile + bordered<SIDE>(i) * IN_ROW) = make_uint2(r | g << 16, b);
        }
    } else {
        const Share<SIDE, SLICE> mine;
        constexpr int ROUNDS = mine.ROUNDS, AT_ONCE = ROUNDS < 4 ? ROUNDS : 4;
        static_assert(ROUNDS % AT_ONCE == 0, "whole rounds");
        const uint4 zeros = make_uint4(0, 0, 0, 0);
#pragma unroll 1
        for (int start = 0; start < ROUNDS; start += AT_ONCE) {
            uint4 raw[AT_ONCE], side[AT_ONCE];
#pragma unroll
            for (int u = 0; u < AT_ONCE; u++) {
                const int at = mine.pixel(start + u) * CI + mine.c;
                const bool counts = mine.image(start + u) < own;
                raw[u] = counts ? *(const uint4*)(source + at) : zeros;
                side[u] = counts && residual ? *(const uint4*)(residual + at) : zeros;
            }
#pragma unroll
            for (int u = 0; u < AT_ONCE; u++) {
                uint4 x = raw[u];
                if (norm && mine.image(start + u) < own) x = through_norm(x, side[u], *norm, mine.c, relu);
                *(uint4*)(tile + mine.bordered(start + u) * IN_ROW + 2 * mine.c) = x;
                if (joined && mine.image(start + u) < here) *(uint4*)(joined + mine.pixel(start + u) * CI + mine.c) = x;
            }
        }
    }
}

// The sums of a warp's lanes that have the same channels, to (rows, 2, CHANNELS).
template <int CHANNELS>
__device__ __forceinline__ void gather_sums(const float* plain, const float* other, int group, int row, float* scratch) {
    constexpr int OWN = Columns<CHANNELS>::OWN;
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < OWN; i++) {
        float a = plain[i], b = other[i];
#pragma unroll
        for (int mask = 4; mask < 32; mask *= 2) a += from_lane(a, mask), b += from_lane(b, mask);
        const int c = group * Columns<CHANNELS>::WIDTH + lane * OWN + i;
        if (lane < 4) scratch[row * 2 * CHANNELS + c] = a, scratch[(row * 2 + 1) * CHANNELS + c] = b;
    }
}

// Their sum over rows.
template <int CHANNELS>
__device__ __forceinline__ float gathered(const float* scratch, int n_rows, int i) {
    float sum = 0;
    for (int row = 0; row < n_rows; row++) sum += scratch[row * 2 * CHANNELS + i];
    return sum;
}

#ifndef BACKWARD

struct Forward {
    Made x;
    const bf16* weight;
    const int* n_valid;
    bf16* out;
    float* parts_out;  // (K, gridDim.x, 2, CO): sums of y and of y * y
    long long weight_stride;
    int batch, per_part;
};

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) forward(const Forward a) {
    SHARED_MEMORY;
    char* const tile = shared;
    char* const weights = tile + IN_BYTES;
    Norm<SLICE>& norm = *(Norm<SLICE>*)(weights + WEIGHT_BYTES);
    const int member = blockIdx.y, part = blockIdx.x, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const long long images = (long long)member * a.batch;
    const int valid = a.n_valid[member];
    const int begin = part * a.per_part, end = min(a.batch, begin + a.per_part);

    if constexpr (CI == SLICE) prepare_norm(norm, a.x, member, valid, SIDE * SIDE, part == 0, (double*)tile);
    clear(tile, IN_BYTES);
    const bf16* const own_weights = a.weight + member * a.weight_stride;
    for (int i = threadIdx.x; i < 9 * SLICE * CO / 8; i += THREADS) {
        const int row = i * 8 / CO, c = i * 8 % CO;  // row: (tap, channel in)
        Piece<8> eight = {};
        if (row % SLICE < CI) eight.load(own_weights + (long long)(row / SLICE * CI + row % SLICE) * CO + c);
#pragma unroll
        for (int p = 0; p < 4; p++) *(unsigned*)(weights + row * OUT_ROW + 2 * Columns<CO>::place(c + 2 * p)) = eight.word[p];
    }
    using N = Columns<CO>;
    constexpr int ROWS = WARPS / N::GROUPS, TILES = IMAGES * OUT * OUT / 16, MINE = TILES / ROWS;
    constexpr int MOST = N::TILES == 2 ? 4 : 2, AT_ONCE = MINE < MOST ? MINE : MOST;
    static_assert(TILES % ROWS == 0 && MINE % AT_ONCE == 0, "whole tiles");
    const int group = warp % N::GROUPS, row = warp / N::GROUPS, quad = lane % 4;
    const Address b_at = address_of(weights) + (lane % 16) * OUT_ROW + 2 * (group * N::WIDTH + lane / 16 * 8);
    float sums[N::OWN] = {}, squares[N::OWN] = {};
    __syncthreads();

    for (int first = begin; first < end; first += IMAGES) {
        const long long at = (images + first) * SIDE * SIDE * CI;
        load_input(
            tile, a.x.source + at, a.x.residual ? a.x.residual + at : 0, a.x.joined ? a.x.joined + at : 0, a.x.norm ? &norm : 0,
            a.x.relu, min(valid, end) - first, end - first
        );
        bf16* const out = a.out + (images + first) * OUT * OUT * CO + group * N::WIDTH + quad * N::OWN;
        __syncthreads();
#pragma unroll 1
        for (int start = row * MINE; start < (row + 1) * MINE; start += AT_ONCE) {
            float sum[AT_ONCE][N::TILES][4] = {};
            Address a_at[AT_ONCE];
#pragma unroll
            for (int m = 0; m < AT_ONCE; m++) {
                const int i = (start + m) * 16 + lane % 16, at = i % (OUT * OUT);
                const int pixel = i / (OUT * OUT) * IN_IMAGE + at / OUT * STRIDE * IN_SIDE + at % OUT * STRIDE;
                a_at[m] = address_of(tile) + pixel * IN_ROW + lane / 16 * 16;
            }
#pragma unroll
            for (int tap = 0; tap < 9; tap++)
#pragma unroll
                for (int k = 0; k < SLICE; k += 16) {
                    unsigned b[N::TILES / 2][4];
#pragma unroll
                    for (int j = 0; j < N::TILES / 2; j++) load_turned(b[j], b_at + (tap * SLICE + k) * OUT_ROW + 32 * j);
#pragma unroll
                    for (int m = 0; m < AT_ONCE; m++) {
                        unsigned x[4];
                        load_matrices(x, a_at[m] + (tap / 3 * IN_SIDE + tap % 3) * IN_ROW + 2 * k);
#pragma unroll
                        for (int j = 0; j < N::TILES; j++) multiply(sum[m][j], x, b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
                    }
                }
#pragma unroll
            for (int m = 0; m < AT_ONCE; m++)
#pragma unroll
                for (int half = 0; half < 2; half++) {
                    const int i = (start + m) * 16 + lane / 4 + 8 * half;
                    Piece<N::OWN> y;
#pragma unroll
                    for (int j = 0; j < N::TILES; j++) {
                        const float p = sum[m][j][2 * half], q = sum[m][j][2 * half + 1];
                        y.word[j] = packed(p, q);
                        sums[2 * j] += p, squares[2 * j] += p * p, sums[2 * j + 1] += q, squares[2 * j + 1] += q * q;
                    }
                    if (IMAGES == 1 || first + i / (OUT * OUT) < end) y.store(out + i * CO);
                }
        }
        __syncthreads();
    }
    float* const mine = a.parts_out + ((long long)member * gridDim.x + part) * 2 * CO;
    gather_sums<CO>(sums, squares, group, row, (float*)tile);
    __syncthreads();
    for (int i = threadIdx.x; i < 2 * CO; i += THREADS) mine[i] = gathered<CO>((const float*)tile, ROWS, i);
}

#else

// Of the input's channels a block has SLICE, blockIdx.z says which: so the weights' gradient fits into its registers.
// Half of the warps make the weights' gradient, the other half the input's.

struct Backward {
    const bf16 *up, *y;         // the gradient behind the ReLU of this convolution's norm, and what was convolved
    const float *norm, *sums;   // (K, 4, CO); the sums (K, n_sums, 2, CO) of up and up * x-hat
    float *d_gamma, *d_beta;
    const bf16* source;         // x, or (raw) what a norm makes it of
    const float* norm_in;       // (K, 4, CI)
    const bf16 *plus, *y_in;    // to be added; what the norm before made x of
    bf16* down;                 // the gradient of x; where y_in is given, behind its ReLU, and with
    float* sums_out;            // (K, gridDim.x, 2, CI)
    const bf16* weight;
    float* d_weight;            // (gridDim.x, K, 9 * CI * CO)
    const int* n_valid;
    long long scale_stride, weight_stride;
    int n_sums, batch, per_part, relu, raw, train;
};

struct alignas(16) Through {  // the gradient of a norm, channel by channel: up * along + y * across + constant
    float along[CO], across[CO], constant[CO];
};

constexpr bool WANTS_INPUT = CI >= 16;  // an image's own gradient is wanted by nobody
constexpr int FOR_WEIGHTS = WANTS_INPUT ? WARPS / 2 : WARPS, FOR_INPUT = WARPS / 2;

// The gradient of what was convolved, of IMAGES images.
__device__ __forceinline__ void load_gradient(char* tile, const bf16* up, const bf16* y, const Through& through, int own) {
    const Share<OUT, CO> mine;
    constexpr int ROUNDS = mine.ROUNDS, AT_ONCE = ROUNDS < 2 ? ROUNDS : 2;
    static_assert(ROUNDS % AT_ONCE == 0, "whole rounds");
    const uint4 zeros = make_uint4(0, 0, 0, 0);
    float2 along[4], across[4], constant[4];
#pragma unroll
    for (int p = 0; p < 4; p++) {
        const int c = mine.c + 2 * p;
        along[p] = pair(through.along, c), across[p] = pair(through.across, c), constant[p] = pair(through.constant, c);
    }
#pragma unroll 1
    for (int start = 0; start < ROUNDS; start += AT_ONCE) {
        uint4 g[AT_ONCE], raw[AT_ONCE];
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++) {
            const int at = mine.pixel(start + u) * CO + mine.c;
            const bool counts = mine.image(start + u) < own;
            g[u] = counts ? *(const uint4*)(up + at) : zeros, raw[u] = counts ? *(const uint4*)(y + at) : zeros;
        }
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++) {
            const unsigned gs[4] = {g[u].x, g[u].y, g[u].z, g[u].w}, ys[4] = {raw[u].x, raw[u].y, raw[u].z, raw[u].w};
            unsigned made[4];
#pragma unroll
            for (int p = 0; p < 4; p++)
                made[p] = packed(
                    low(gs[p]) * along[p].x + (low(ys[p]) * across[p].x + constant[p].x),
                    high(gs[p]) * along[p].y + (high(ys[p]) * across[p].y + constant[p].y)
                );
            *(uint4*)(tile + mine.bordered(start + u) * OUT_ROW + 2 * mine.c) =
                mine.image(start + u) < own ? make_uint4(made[0], made[1], made[2], made[3]) : zeros;
        }
    }
}

// Over the pixels of the tiles: a warp has 16 channels in by 16 out for all nine taps, and a share of the pixels.
constexpr int BLOCKS_IN = SLICE / 16, BLOCKS_OUT = CO / 16, SHARES = FOR_WEIGHTS / (BLOCKS_IN * BLOCKS_OUT);
static_assert(SHARES >= 1 && FOR_WEIGHTS % (BLOCKS_IN * BLOCKS_OUT) == 0, "whole blocks of channels");

struct WeightGradient {
    float sum[9][2][4];
    int share, block_in, block_out;

    __device__ __forceinline__ WeightGradient(int warp) : sum{} {
        share = warp / (BLOCKS_IN * BLOCKS_OUT);
        block_in = warp % (BLOCKS_IN * BLOCKS_OUT) / BLOCKS_OUT, block_out = warp % BLOCKS_OUT;
    }

    __device__ __forceinline__ void add(const char* tile, const char* gradient) {
        constexpr int STEPS = IMAGES * OUT * OUT / 16 / SHARES;
        static_assert(IMAGES * OUT * OUT / 16 % SHARES == 0, "whole shares");
        const int lane = threadIdx.x % 32;
#pragma unroll 1
        for (int step = share * STEPS; step < (share + 1) * STEPS; step++) {
            const int i = step * 16 + lane % 16, j = step * 16 + lane % 8 + lane / 16 * 8, at = j % (OUT * OUT);
            unsigned dy[4];
            load_turned(dy, address_of(gradient) + bordered<OUT>(i) * OUT_ROW + 2 * (block_out * 16 + lane / 16 * 8));
            const int pixel = j / (OUT * OUT) * IN_IMAGE + at / OUT * STRIDE * IN_SIDE + at % OUT * STRIDE;
            const Address x_at = address_of(tile) + pixel * IN_ROW + 2 * (block_in * 16 + lane / 8 % 2 * 8);
#pragma unroll
            for (int tap = 0; tap < 9; tap++) {
                unsigned x[4];
                load_turned(x, x_at + (tap / 3 * IN_SIDE + tap % 3) * IN_ROW);
                multiply(sum[tap][0], x, dy[0], dy[1]);
                multiply(sum[tap][1], x, dy[2], dy[3]);
            }
        }
    }

    // To the slice's rows of (9, n_in, CO); in turns, where several warps have the same channels.
    __device__ __forceinline__ void add_to(float* place, int n_in) const {
        const int lane = threadIdx.x % 32;
#pragma unroll
        for (int tap = 0; tap < 9; tap++)
#pragma unroll
            for (int half = 0; half < 2; half++)
#pragma unroll
                for (int r = 0; r < 4; r++) {
                    const int in = block_in * 16 + lane / 4 + r / 2 * 8, out = block_out * 16 + half * 8 + lane % 4 * 2 + r % 2;
                    float& at = place[(tap * n_in + in) * CO + out];
                    at = sum[tap][half][r] + (share ? at : 0.f);
                }
    }
};

struct InputGradient {
    using N = Columns<SLICE>;
    float sums[N::OWN], products[N::OWN];
    int group, row;

    __device__ __forceinline__ InputGradient(int warp) : sums{}, products{}, group(warp % N::GROUPS), row(warp / N::GROUPS) {}

    // The first pixel a lane has of a tile of one parity, counted in lines that are `line` long; the second is EIGHT further.
    template <int LINE, int IMAGE>
    static __device__ __forceinline__ int place_of(int i, int odd_row, int odd_column) {
        const int image = IMAGES == 1 ? 0 : i / (OUT * OUT), at = IMAGES == 1 ? i : i % (OUT * OUT);
        return image * IMAGE + (at / OUT * STRIDE + odd_row) * LINE + at % OUT * STRIDE + odd_column;
    }
    template <int LINE>
    static constexpr int EIGHT = OUT > 8 ? 8 * STRIDE : 8 / OUT * STRIDE * LINE;

    // `at` is where the block's channels of the images begin, of which `own` count and `here` are the block's.
    __device__ __forceinline__ void add(
        const Backward& a, const char* tile, const char* gradient, const char* weights, long long at, int own, int here
    ) {
        constexpr int ROWS = FOR_INPUT / N::GROUPS, TILES = IMAGES * OUT * OUT / 16, MINE = TILES / ROWS;
        constexpr int MOST = N::TILES == 2 ? 4 : 2, AT_ONCE = MINE < MOST ? MINE : MOST;
        static_assert(TILES % ROWS == 0 && MINE % AT_ONCE == 0, "whole tiles");
        const int lane = threadIdx.x % 32, c = group * N::WIDTH + lane % 4 * N::OWN;
        const Address b_at = address_of(weights) + (group * N::WIDTH + lane / 16 * 8 + lane % 8) * OUT_ROW + lane / 8 % 2 * 16;
        const float least = a.y_in && a.relu ? 0.f : -__uint_as_float(0x7f800000u);
        const bf16 *const plus_at = a.plus + at + c, *const y_at = a.y_in + at + c;
        bf16* const down_at = a.down + at + c;
        const char* const x_at = tile + (IN_SIDE + 1) * IN_ROW + 2 * c;
        // With a stride, a pixel's parity says which taps reach it: a tile has pixels of one parity.
#pragma unroll 1
        for (int turn = 0; turn < STRIDE * STRIDE * MINE; turn += AT_ONCE) {
            const int odd_row = turn / MINE / STRIDE, odd_column = turn / MINE % STRIDE, start = row * MINE + turn % MINE;
            float sum[AT_ONCE][N::TILES][4] = {};
            Address a_at[AT_ONCE];
            Piece<N::OWN> plus[AT_ONCE][2], y[AT_ONCE][2];
#pragma unroll
            for (int m = 0; m < AT_ONCE; m++) {
                a_at[m] = address_of(gradient) + bordered<OUT>((start + m) * 16 + lane % 16) * OUT_ROW + lane / 16 * 16;
                const int place = place_of<SIDE, SIDE * SIDE>((start + m) * 16 + lane / 4, odd_row, odd_column) * CI;
#pragma unroll
                for (int half = 0; half < 2; half++) {
                    plus[m][half] = {}, y[m][half] = {};
                    if (IMAGES > 1 && (start + m) * 16 / (OUT * OUT) >= own) continue;
                    if (a.plus) plus[m][half].load(plus_at + place + half * EIGHT<SIDE> * CI);
                    if (a.y_in) y[m][half].load(y_at + place + half * EIGHT<SIDE> * CI);
                }
            }
#pragma unroll
            for (int tap = 0; tap < 9; tap++) {
                int shift = (1 - tap / 3) * OUT_SIDE + 1 - tap % 3;
                if constexpr (STRIDE == 2) {
                    const int down = odd_row + 1 - tap / 3, right = odd_column + 1 - tap % 3;
                    if (down % 2 != 0 || right % 2 != 0) continue;
                    shift = down / 2 * OUT_SIDE + right / 2;
                }
#pragma unroll
                for (int k = 0; k < CO; k += 16) {
                    unsigned b[N::TILES / 2][4];
#pragma unroll
                    for (int j = 0; j < N::TILES / 2; j++) load_matrices(b[j], b_at + (tap * SLICE + 16 * j) * OUT_ROW + 2 * k);
#pragma unroll
                    for (int m = 0; m < AT_ONCE; m++) {
                        unsigned dy[4];
                        load_matrices(dy, a_at[m] + shift * OUT_ROW + 2 * k);
#pragma unroll
                        for (int j = 0; j < N::TILES; j++) multiply(sum[m][j], dy, b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
                    }
                }
            }
#pragma unroll
            for (int m = 0; m < AT_ONCE; m++) {
                const int i = (start + m) * 16 + lane / 4;
                const char* const x_here = x_at + place_of<IN_SIDE, IN_IMAGE>(i, odd_row, odd_column) * IN_ROW;
                bf16* const down_here = down_at + place_of<SIDE, SIDE * SIDE>(i, odd_row, odd_column) * CI;
#pragma unroll
                for (int half = 0; half < 2; half++) {
                    Piece<N::OWN> x, made;
                    x.load(x_here + half * EIGHT<IN_SIDE> * IN_ROW);
#pragma unroll
                    for (int j = 0; j < N::TILES; j++) {
                        float g[2];
#pragma unroll
                        for (int e = 0; e < 2; e++) {
                            const int d = 2 * j + e;
                            g[e] = sum[m][j][2 * half + e] + plus[m][half].at(d);
                            g[e] = x.at(d) > least ? g[e] : 0.f;
                            sums[d] += g[e], products[d] += g[e] * y[m][half].at(d);
                        }
                        made.word[j] = packed(g[0], g[1]);
                    }
                    if (IMAGES == 1 || (start + m) * 16 / (OUT * OUT) < here) made.store(down_here + half * EIGHT<SIDE> * CI);
                }
            }
        }
    }
};

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) backward(const Backward a) {
    SHARED_MEMORY;
    char* const tile = shared;
    char* const gradient = tile + IN_BYTES;
    char* const weights = gradient + OUT_BYTES;
    Norm<SLICE>& norm = *(Norm<SLICE>*)(weights + (WANTS_INPUT ? WEIGHT_BYTES : 0));
    Through& through = *(Through*)(&norm + 1);
    double* const scratch = (double*)tile;
    double* const total = scratch + THREADS;
    const int member = blockIdx.y, part = blockIdx.x, slice = blockIdx.z * SLICE, warp = threadIdx.x / 32;
    const long long images = (long long)member * a.batch;
    const int valid = a.n_valid[member];
    const int begin = part * a.per_part, end = min(a.batch, begin + a.per_part);

    add_parts(a.sums + (long long)member * a.n_sums * 2 * CO, a.n_sums, CO, total, scratch);
    for (int c = threadIdx.x; c < CO; c += THREADS) {
        const float* const kept = a.norm + member * 4 * CO;
        const float n = (float)max(valid * OUT * OUT, 1), mean = kept[c], rstd = kept[CO + c], scale = kept[2 * CO + c];
        const float plain = a.train ? (float)total[c] / n : 0.f, along = a.train ? (float)total[CO + c] / n : 0.f;
        through.along[c] = scale;
        through.across[c] = -scale * rstd * along;
        through.constant[c] = -scale * plain + scale * rstd * along * mean;
        if (part == 0 && slice == 0) {
            a.d_beta[member * a.scale_stride + c] = (float)total[c];
            a.d_gamma[member * a.scale_stride + c] = (float)total[CO + c];
        }
    }
    if (a.norm_in) norm.read(a.norm_in + member * 4 * CI + slice, CI);
    __syncthreads();
    clear(tile, IN_BYTES + OUT_BYTES);
    if constexpr (WANTS_INPUT)
        for (int i = threadIdx.x; i < 9 * SLICE * CO / 8; i += THREADS) {
            const int row = i * 8 / CO, in = row % SLICE, tap = row / SLICE;
            const int at = tap * SLICE + Columns<SLICE>::place(in);  // in the order they are read in
            *(uint4*)(weights + at * OUT_ROW + i * 8 % CO * 2) =
                *(const uint4*)(a.weight + member * a.weight_stride + (tap * CI + slice + in) * CO + i * 8 % CO);
        }
    __syncthreads();

    const auto load = [&](int first) {
        const long long at = (images + first) * OUT * OUT * CO, in_at = (images + first) * SIDE * SIDE * CI + slice;
        const int own = min(valid, end) - first;
        load_gradient(gradient, a.up + at, a.y + at, through, own);
        load_input(tile, a.source + in_at, 0, 0, a.raw ? &norm : 0, a.relu, own, end - first);
        __syncthreads();
    };
    float* const mine = a.d_weight + ((long long)part * gridDim.y + member) * 9 * CI * CO;
    float* const added = (float*)shared;    // where warps share channels
    float* const rows = (float*)weights;    // of sums
    if (warp < FOR_WEIGHTS) {
        WeightGradient made(warp);
        for (int first = begin; first < end; first += IMAGES) {
            load(first);
            made.add(tile, gradient);
            __syncthreads();
        }
        if constexpr (SHARES == 1) made.add_to(mine + slice * CO, CI);
        else
            for (int turn = 0; turn < SHARES; turn++) {
                if (made.share == turn) made.add_to(added, SLICE);
                __syncthreads();
            }
    } else if constexpr (WANTS_INPUT) {
        InputGradient made(warp - FOR_WEIGHTS);
        for (int first = begin; first < end; first += IMAGES) {
            load(first);
            made.add(a, tile, gradient, weights, (images + first) * SIDE * SIDE * CI + slice, min(valid, end) - first, end - first);
            __syncthreads();
        }
        gather_sums<SLICE>(made.sums, made.products, made.group, made.row, rows);
        if constexpr (SHARES > 1)
            for (int turn = 0; turn < SHARES; turn++) __syncthreads();
    }
    __syncthreads();
    if constexpr (SHARES > 1) {
        static_assert(SHARES == 1 || 9 * SLICE * CO * 4 <= IN_BYTES + OUT_BYTES, "room for the weights' gradient beside the sums");
        for (int i = threadIdx.x; i < 9 * SLICE * CO; i += THREADS) {
            const int row = i / CO, in = slice + row % SLICE;
            if (in < CI) mine[(row / SLICE * CI + in) * CO + i % CO] = added[i];
        }
    }
    if (WANTS_INPUT && a.y_in) {
        constexpr int N_ROWS = FOR_INPUT / Columns<SLICE>::GROUPS;
        float* const out = a.sums_out + ((long long)member * gridDim.x + part) * 2 * CI + slice;
        for (int c = threadIdx.x; c < SLICE; c += THREADS) {
            const float plain = gathered<SLICE>(rows, N_ROWS, c), product = gathered<SLICE>(rows, N_ROWS, SLICE + c);
            out[c] = plain, out[CI + c] = norm.rstd[c] * (product - norm.mean[c] * plain);  // of y, and so of x-hat
        }
    }
}
#endif
