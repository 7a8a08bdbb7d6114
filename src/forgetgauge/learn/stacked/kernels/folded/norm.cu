// What a norm does where no convolution does it on the way: applied forwards, and the start of its gradient backwards.
// Compiled behind common.cuh for DEPTH channels.

struct Join {
    Made x;
    const int* n_valid;
    int batch, n_pixels, per_part;  // eights of channels per block
};

// x = relu(norm(source) + residual), written to `joined`; zeros behind a member's own images.
extern "C" __global__ void __launch_bounds__(THREADS) join(const Join a) {
    SHARED_MEMORY;
    Norm<DEPTH>& norm = *(Norm<DEPTH>*)shared;
    const int member = blockIdx.y, n_eights = a.batch * a.n_pixels * (DEPTH / 8);
    prepare_norm(norm, a.x, member, a.n_valid[member], a.n_pixels, blockIdx.x == 0, (double*)(&norm + 1));
    const int own = a.n_valid[member] * a.n_pixels * (DEPTH / 8), c = threadIdx.x % (DEPTH / 8) * 8;
    const long long start = (long long)member * n_eights;
    const int end = min(n_eights, (int)(blockIdx.x + 1) * a.per_part);
    for (int i = blockIdx.x * a.per_part + threadIdx.x; i < end; i += THREADS) {
        uint4 x = make_uint4(0, 0, 0, 0);
        if (i < own) {
            const uint4 side = a.x.residual ? ((const uint4*)a.x.residual)[start + i] : x;
            x = through_norm(((const uint4*)a.x.source)[start + i], side, norm, c, a.x.relu);
        }
        ((uint4*)a.x.joined)[start + i] = x;
    }
}

struct Gate {
    const bf16 *up, *x, *y;  // the gradient of x = relu(norm(y) + ...)
    const float* norm;       // (K, 4, C)
    bf16* out;               // behind the ReLU
    float* parts_out;        // (K, gridDim.x, 2, C): its sum, and that of its product with x-hat
    const int* n_valid;
    int batch, n_pixels, per_part, relu;
};

extern "C" __global__ void __launch_bounds__(THREADS) gate(const Gate a) {
    SHARED_MEMORY;
    Norm<DEPTH>& norm = *(Norm<DEPTH>*)shared;
    float* const scratch = (float*)(&norm + 1);  // (2, C, threads that share eight channels)
    const int member = blockIdx.y, n_eights = a.batch * a.n_pixels * (DEPTH / 8);
    norm.read(a.norm + member * 4 * DEPTH);
    __syncthreads();
    const int own = a.n_valid[member] * a.n_pixels * (DEPTH / 8), c = threadIdx.x % (DEPTH / 8) * 8;
    const long long start = (long long)member * n_eights;
    const int end = min(n_eights, (int)(blockIdx.x + 1) * a.per_part);
    float sums[8] = {}, products[8] = {};
    for (int i = blockIdx.x * a.per_part + threadIdx.x; i < end; i += THREADS) {
        Piece<8> made = {};
        if (i < own) {
            Piece<8> up, x, y;
            up.load((const uint4*)a.up + start + i), x.load((const uint4*)a.x + start + i), y.load((const uint4*)a.y + start + i);
#pragma unroll
            for (int p = 0; p < 4; p++) {
                float g[2];
#pragma unroll
                for (int e = 0; e < 2; e++) {
                    const int d = 2 * p + e;
                    g[e] = !a.relu || x.at(d) > 0.f ? up.at(d) : 0.f;
                    sums[d] += g[e], products[d] += g[e] * (y.at(d) - norm.mean[c + d]) * norm.rstd[c + d];
                }
                made.word[p] = packed(g[0], g[1]);
            }
        }
        made.store((uint4*)a.out + start + i);
    }
    constexpr int SHARING = THREADS / (DEPTH / 8);
#pragma unroll
    for (int d = 0; d < 8; d++) {
        scratch[(c + d) * SHARING + threadIdx.x / (DEPTH / 8)] = sums[d];
        scratch[(DEPTH + c + d) * SHARING + threadIdx.x / (DEPTH / 8)] = products[d];
    }
    __syncthreads();
    for (int i = threadIdx.x; i < 2 * DEPTH; i += THREADS) {
        float sum = 0;
        for (int j = 0; j < SHARING; j++) sum += scratch[i * SHARING + j];
        a.parts_out[((long long)member * gridDim.x + blockIdx.x) * 2 * DEPTH + i] = sum;
    }
}
