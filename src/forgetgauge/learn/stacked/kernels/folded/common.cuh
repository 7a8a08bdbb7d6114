// What the folded kernels share: moving and multiplying small matrices, and batch norms made of sums.
// Compiled with WARPS, the warps of a block.

#ifndef EMULATED
#define SHARED_MEMORY extern __shared__ __align__(16) char shared[]
typedef unsigned Address;  // in shared memory
__device__ __forceinline__ Address address_of(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }

// Four 8 x 8 matrices; lane l names row l % 8 of matrix l / 8.
__device__ __forceinline__ void load_matrices(unsigned (&r)[4], Address at) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at));
}

__device__ __forceinline__ void load_turned(unsigned (&r)[4], Address at) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at));
}

// d (16 x 8) += a (16 x 16) b (16 x 8)
__device__ __forceinline__ void multiply(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ unsigned packed(float low, float high) {
    unsigned both;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
}

__device__ __forceinline__ float from_lane(float value, int mask) { return __shfl_xor_sync(0xffffffffu, value, mask); }
#endif

typedef unsigned short bf16;

__device__ __forceinline__ float low(unsigned both) { return __uint_as_float(both << 16); }
__device__ __forceinline__ float high(unsigned both) { return __uint_as_float(both & 0xffff0000u); }

constexpr int THREADS = 32 * WARPS;

// Two neighbouring ones, read as one.
__device__ __forceinline__ float2 pair(const float* of, int i) { return *(const float2*)(of + i); }

template <int C>
struct alignas(16) Norm {  // what a norm does to y, and what its gradient needs
    float mean[C], rstd[C], scale[C], shift[C];
    __device__ void read(const float* kept, int n = C) {  // C of the n channels of a member; by all threads
        for (int c = threadIdx.x; c < C; c += THREADS)
            mean[c] = kept[c], rstd[c] = kept[n + c], scale[c] = kept[2 * n + c], shift[c] = kept[3 * n + c];
    }
};

// How a warp's part of a product (16 rows by 8 * TILES channels) lies: channels are dealt to the tiles' columns so that
// a lane has 2 * TILES neighbouring ones, which it reads and writes in one piece.
template <int CHANNELS>
struct Columns {
    static constexpr int TILES = CHANNELS / 8 < 4 ? CHANNELS / 8 : 4;
    static constexpr int OWN = 2 * TILES;
    static constexpr int WIDTH = 8 * TILES;
    static constexpr int GROUPS = CHANNELS / WIDTH;
    
    static __device__ __forceinline__ int place(int channel) {
        const int within = channel % WIDTH, lane = within / OWN, rest = within % OWN;
        return channel / WIDTH * WIDTH + rest / 2 * 8 + 2 * lane + rest % 2;
    }
};

template <int N>
struct Piece {  // N neighbouring channels of bfloat16
    unsigned word[N / 2];
    __device__ __forceinline__ void load(const void* from) {
        if constexpr (N == 8) {
            const uint4 v = *(const uint4*)from;
            word[0] = v.x, word[1] = v.y, word[2] = v.z, word[3] = v.w;
        } else {
            const uint2 v = *(const uint2*)from;
            word[0] = v.x, word[1] = v.y;
        }
    }
    __device__ __forceinline__ void store(void* to) const {
        if constexpr (N == 8) *(uint4*)to = make_uint4(word[0], word[1], word[2], word[3]);
        else *(uint2*)to = make_uint2(word[0], word[1]);
    }
    __device__ __forceinline__ float at(int i) const { return i % 2 ? high(word[i / 2]) : low(word[i / 2]); }
};

__device__ __forceinline__ void clear(char* at, int bytes) {
    for (int i = threadIdx.x; i < bytes / 16; i += THREADS) ((uint4*)at)[i] = make_uint4(0, 0, 0, 0);
}

// total[0 .. 2 * channels) of (n_parts, 2, channels), in a fixed order.
__device__ void add_parts(const float* parts, int n_parts, int channels, double* total, double* scratch) {
    const int width = 2 * channels, column = threadIdx.x % width, slice = threadIdx.x / width, slices = THREADS / width;
    double sum = 0;
    for (int part = slice; part < n_parts; part += slices) sum += parts[part * width + column];
    scratch[slice * width + column] = sum;
    __syncthreads();
    if (slice == 0) {
        for (int other = 1; other < slices; other++) sum += scratch[other * width + column];
        total[column] = sum;
    }
    __syncthreads();
}

struct Made {  // how a value x is made: relu(norm(source) + residual) where there is a norm, else it is source
    const bf16 *source, *residual;
    bf16* joined;                       // x, where it is to be written
    float* norm;                        // (K, 4, C)
    const float *parts, *gamma, *beta;  // where the norm is still to be made of the sums (K, n_parts, 2, C) of source
    float *running_mean, *running_var;
    long long scale_stride;
    int n_parts, relu;
    float momentum, epsilon;
};

// The norm of a member into shared memory; made of sums, the `first` block of the member also keeps it for others.
template <int C>
__device__ void prepare_norm(Norm<C>& norm, const Made& made, int member, int n_valid, int n_pixels, bool first, double* scratch) {
    if (!made.norm) return;
    float* const kept = made.norm + member * 4 * C;
    if (!made.parts) {
        norm.read(kept);
        __syncthreads();
        return;
    }
    double* const total = scratch + THREADS;
    add_parts(made.parts + (long long)member * made.n_parts * 2 * C, made.n_parts, C, total, scratch);
    for (int c = threadIdx.x; c < C; c += THREADS) {
        const double n = (double)max(n_valid * n_pixels, 1), mean = total[c] / n;
        const double squares = fmax(total[C + c] - n * mean * mean, 0.0);
        const float rstd = n_valid > 0 ? 1.f / sqrtf((float)(squares / n) + made.epsilon) : 0.f;  // nothing to pass on
        const float scale = made.gamma[member * made.scale_stride + c] * rstd;
        norm.mean[c] = (float)mean, norm.rstd[c] = rstd, norm.scale[c] = scale;
        norm.shift[c] = made.beta[member * made.scale_stride + c] - (float)mean * scale;
        if (first) {
            kept[c] = norm.mean[c], kept[C + c] = rstd, kept[2 * C + c] = scale, kept[3 * C + c] = norm.shift[c];
            if (n_valid > 0) {
                float &m = made.running_mean[member * C + c], &v = made.running_var[member * C + c];
                m += made.momentum * ((float)mean - m);
                v += made.momentum * ((float)(squares / fmax(n - 1, 1.0)) - v);
            }
        }
    }
    __syncthreads();
}

// relu(norm(y) + side) of the eight channels from c on.
template <int C>
__device__ __forceinline__ uint4 through_norm(uint4 y, uint4 side, const Norm<C>& norm, int c, bool relu) {
    const unsigned given[4] = {y.x, y.y, y.z, y.w}, added[4] = {side.x, side.y, side.z, side.w};
    const float least = relu ? 0.f : -__uint_as_float(0x7f800000u);
    unsigned made[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const float2 scale = pair(norm.scale, c + 2 * i), shift = pair(norm.shift, c + 2 * i);
        const float a = low(given[i]) * scale.x + shift.x + low(added[i]), b = high(given[i]) * scale.y + shift.y + high(added[i]);
        made[i] = packed(fmaxf(a, least), fmaxf(b, least));
    }
    return make_uint4(made[0], made[1], made[2], made[3]);
}
