// Instructions of a whole warp: each lane leaves its operands and rests until all lanes have, then computes
// its own part of the result. Layouts are those of the PTX manual.

namespace warps {
constexpr int lanes = 32;
enum { shuffle = fibres::first_of_warps, product, matrices, barrier };
// Operands of the instruction at hand and of the last one, which slower lanes still read.
alignas(16) static unsigned char operands[2][lanes][32];
// Returns the operands of all lanes, 32 bytes each.
template <class T> static const unsigned char (*exchange(int what, const T &own))[32] {
    static_assert(sizeof(T) <= 32);
    int turn = fibres::turns[fibres::here];
    fibres::turns[fibres::here] ^= 1;
    std::memcpy(operands[turn][fibres::here % lanes], &own, sizeof own);
    fibres::rest(what);
    return operands[turn];
}
static int lane() { return fibres::here % lanes; }
}

static unsigned __activemask() { return ~0u; }
static void __syncwarp() { fibres::rest(warps::barrier); }
template <class T> static T __shfl_xor_sync(unsigned, T own, unsigned mask) {
    auto all = warps::exchange(warps::shuffle, own);
    T other;
    std::memcpy(&other, all[warps::lane() ^ mask], sizeof other);
    return other;
}
template <class T> static T __shfl_sync(unsigned, T own, unsigned from) {
    auto all = warps::exchange(warps::shuffle, own);
    T other;
    std::memcpy(&other, all[from % warps::lanes], sizeof other);
    return other;
}

static uint32_t __cvta_generic_to_shared(const void *p) { return uint32_t(static_cast<const char *>(p) - shared_memory); }

// The number of a register's half.
static float half_of(const unsigned char *registers, int number, int half) {
    __nv_bfloat16 x;
    std::memcpy(&x.bits, registers + number * 4 + half * 2, 2);
    return x;
}

static void mma_sync_aligned_m16n8k16_row_col_f32_bf16_bf16_f32(
    float &d0, float &d1, float &d2, float &d3, uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3, uint32_t b0, uint32_t b1,
    float c0, float c1, float c2, float c3) {
    struct { uint32_t a[4], b[2]; } own = {{a0, a1, a2, a3}, {b0, b1}};
    auto all = warps::exchange(warps::product, own);
    float sums[] = {c0, c1, c2, c3};
    for (int i = 0; i < 4; i++) {
        int row = warps::lane() / 4 + i / 2 * 8, column = warps::lane() % 4 * 2 + i % 2;
        for (int k = 0; k < 16; k++)
            sums[i] += half_of(all[row % 8 * 4 + k % 8 / 2], row / 8 + k / 8 * 2, k % 2) * half_of(all[column * 4 + k % 8 / 2], 4 + k / 8, k % 2);
    }
    d0 = sums[0], d1 = sums[1], d2 = sums[2], d3 = sums[3];
}

template <bool turned> static void ldmatrix(uint32_t *to, uint32_t address) {
    if (address % 16) std::abort();
    auto all = warps::exchange(warps::matrices, address);
    for (int matrix = 0; matrix < 4; matrix++) {
        uint16_t halves[2];
        for (int half = 0; half < 2; half++) {
            int major = warps::lane() / 4, minor = warps::lane() % 4 * 2 + half;
            uint32_t row;
            std::memcpy(&row, all[matrix * 8 + (turned ? minor : major)], 4);
            std::memcpy(&halves[half], shared_memory + row + 2 * (turned ? major : minor), 2);
        }
        std::memcpy(&to[matrix], halves, 4);
    }
}
static void ldmatrix_sync_aligned_m8n8_x4_shared__cta_b16(uint32_t &d0, uint32_t &d1, uint32_t &d2, uint32_t &d3, uint32_t address) {
    uint32_t d[4];
    ldmatrix<false>(d, address);
    d0 = d[0], d1 = d[1], d2 = d[2], d3 = d[3];
}
static void ldmatrix_sync_aligned_m8n8_x4_trans_shared__cta_b16(uint32_t &d0, uint32_t &d1, uint32_t &d2, uint32_t &d3, uint32_t address) {
    uint32_t d[4];
    ldmatrix<true>(d, address);
    d0 = d[0], d1 = d[1], d2 = d[2], d3 = d[3];
}
