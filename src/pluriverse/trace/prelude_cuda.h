// CUDA: one thread is one lane of one environment.
// Given: T (scalar type), LANE_COUNT.
typedef T F;
typedef bool M;
#define INLINE __device__ __forceinline__
#define SPLAT(x) ((T)(x))
#define TRUE_MASK true
#define FALSE_MASK false
#define NO_UNROLL _Pragma("unroll 1")
#define PRAGMA(text) _Pragma(#text)
#define UNROLL(n) PRAGMA(unroll n)
#define TABLE(type, name, size) static __device__ const type name[size]
// A large local array: a row of the workspace an element, environments side by side.
template <typename E> struct Rows { T* first; size_t stride; INLINE E& operator[](int i) const { return *(E*)(first + i * stride); } };
#define WORKSPACE(type, name, row) const Rows<type> name{workspace + (size_t)(row) * stride + env, stride}
#define ANY(m) (m)
#define NOT(m) (!(m))
#define GATHER(table, number) table[(int)(number)]
#define MASK(condition) (condition)
#define READ(buffer, row) buffer[(size_t)(row) * stride + env]
#define WRITE_LANES(buffer, row, value) buffer[(size_t)(row) * stride + env] = (value)
#define WRITE(buffer, row, value) do { if (lane == 0) WRITE_LANES(buffer, row, value); } while (0)
#define TEST(word, bit) ((word[env] & (bit)) != 0)
#define ALARM(alarm, value) do { if (*(volatile int*)(alarm) < (value)) *(volatile int*)(alarm) = (value); } while (0)
#define RAISE(word, condition, bit, alarm, value) do { \
  if (lane == 0 && (condition) && !(word[env] & (bit))) { word[env] |= (bit); ALARM(alarm, value); } } while (0)

INLINE T ABS(T x) { return fabs(x); }
INLINE T MIN(T a, T b) { return b < a ? b : a; }  // a NaN in the first operand stays, as in Python
INLINE T MAX(T a, T b) { return a < b ? b : a; }
INLINE T SELECT(bool m, T a, T b) { return m ? a : b; }
INLINE bool SELECT(bool m, bool a, bool b) { return m ? a : b; }
#if T_IS_DOUBLE
#define HUGE_NUMBER 1e300
INLINE T SIN(T x) { return ::sin(x); }
INLINE T COS(T x) { return ::cos(x); }
INLINE T SQRT(T x) { return ::sqrt(x); }
INLINE T RSQRT(T x) { return ::rsqrt(x); }
INLINE T RCP(T x) { return 1.0 / x; }
INLINE T ATAN2(T y, T x) { return ::atan2(y, x); }
INLINE T POW(T x, T y) { return ::pow(x, y); }
INLINE T EXP(T x) { return ::exp(x); }
INLINE T FLOOR(T x) { return ::floor(x); }
#else
#define HUGE_NUMBER 1e30f
// Cody-Waite reduction by pi/2 and minimax polynomials, for |x| < 1e4: no slow path, unlike sinf.
INLINE void sine_cosine(float x, float* s, float* c) {
  float n = rintf(x * 0.636619772f); int k = (int)n;
  float r = fmaf(-n, 1.5707855225f, x); r = fmaf(-n, 1.0804273188e-5f, r); r = fmaf(-n, 6.0770999344e-11f, r);
  float z = r * r;
  float sine = r + r * z * (-1.6666654611e-1f + z * (8.3321608736e-3f - z * 1.9515295891e-4f));
  float cosine = 1.f - 0.5f * z + z * z * (4.166664568298827e-2f + z * (-1.388731625493765e-3f + z * 2.443315711809948e-5f));
  float a = k & 1 ? cosine : sine, b = k & 1 ? sine : cosine;
  *s = k & 2 ? -a : a; *c = (k + 1) & 2 ? -b : b;
}
INLINE T SIN(T x) { T s, c; sine_cosine(x, &s, &c); return s; }
INLINE T COS(T x) { T s, c; sine_cosine(x, &s, &c); return c; }
INLINE T SQRT(T x) { return sqrtf(x); }
INLINE T RSQRT(T x) { return rsqrtf(x); }
INLINE T RCP(T x) { return 1.f / x; }
INLINE T ATAN2(T y, T x) { return atan2f(y, x); }
INLINE T POW(T x, T y) { return powf(x, y); }
INLINE T EXP(T x) { return expf(x); }
INLINE T FLOOR(T x) { return floorf(x); }
#endif

#if LANE_COUNT == 1
#define LANE_SUM(x) (x)
#define LANE_ANY(m) (m)
#else
#define LANE_ROWS(...) lane_pick<int>(lane, __VA_ARGS__)
#define LANES(...) lane_pick<T>(lane, __VA_ARGS__)
#define LANE_MASK (((1u << LANE_COUNT) - 1u) << (threadIdx.x & 31 & ~(LANE_COUNT - 1)))
template <typename V> INLINE V lane_pick(int lane, V a, V b) { return lane ? b : a; }
template <typename V> INLINE V lane_pick(int lane, V a, V b, V c, V d) { return lane & 2 ? (lane & 1 ? d : c) : (lane & 1 ? b : a); }
INLINE T LANE_SUM(T x) {
  for (int bit = 1; bit < LANE_COUNT; bit *= 2) x += __shfl_xor_sync(LANE_MASK, x, bit);
  return x;
}
INLINE bool LANE_ANY(bool m) { return __any_sync(LANE_MASK, m); }
#endif
