// CPU: one vector holds WIDTH scalars: one of each of WIDTH environments or, with lanes, the lanes of one environment.
// Given: T (scalar type), WIDTH, LANE_COUNT.
#pragma clang fp contract(fast)
#if T_IS_DOUBLE
typedef long long I1;
#define HUGE_NUMBER 1e300
#else
typedef int I1;
#define HUGE_NUMBER 1e30f
#endif
typedef T F __attribute__((vector_size(sizeof(T) * WIDTH)));
typedef I1 M __attribute__((vector_size(sizeof(T) * WIDTH)));
typedef T F_anywhere __attribute__((vector_size(sizeof(T) * WIDTH), aligned(sizeof(T))));
typedef int W __attribute__((vector_size(4 * WIDTH)));
typedef int W_anywhere __attribute__((vector_size(4 * WIDTH), aligned(4)));
#define INLINE static inline __attribute__((always_inline))
INLINE F SPLAT(T x) { return x - (F){}; }
#define FALSE_MASK ((M){})
#define TRUE_MASK (~(M){})
#define NO_UNROLL _Pragma("clang loop unroll(disable) vectorize(disable)")
#define UNROLL(n) NO_UNROLL
#define TABLE(type, name, size) static const type name[size]
// A large local array: elements of this thread's block of the workspace, one after the other.
#define WORKSPACE(type, name, row) type* const name = (type*)(workspace + (size_t)(row) * WIDTH)
INLINE bool ANY(M m) { return __builtin_reduce_or(m) != 0; }
INLINE M NOT(M m) { return ~m; }
INLINE M MASK(bool condition) { return (M){} - (I1)condition; }
INLINE F SELECT(M m, F a, F b) { return m ? a : b; }
INLINE M SELECT(M m, M a, M b) { return m ? a : b; }
INLINE F MIN(F a, F b) { return b < a ? b : a; }  // a NaN in the first operand stays, as in Python
INLINE F MAX(F a, F b) { return a < b ? b : a; }
INLINE F ABS(F x) { return x < (T)0 ? -x : x; }
INLINE F GATHER(const T* table, F number) { F r; for (int k = 0; k < WIDTH; ++k) r[k] = table[(int)number[k]]; return r; }
INLINE F SQRT(F x) { return __builtin_elementwise_sqrt(x); }
INLINE F RSQRT(F x) { return (T)1 / SQRT(x); }
INLINE F RCP(F x) { return (T)1 / x; }
#define EACH(expression) F r; for (int k = 0; k < WIDTH; ++k) r[k] = expression; return r
INLINE F ATAN2(F y, F x) { EACH(::atan2(y[k], x[k])); }
INLINE F POW(F x, F y) { EACH(::pow(x[k], y[k])); }
INLINE F EXP(F x) { EACH(::exp(x[k])); }
INLINE F FLOOR(F x) { return __builtin_elementwise_floor(x); }
#if T_IS_DOUBLE
INLINE F SIN(F x) { EACH(::sin(x[k])); }
INLINE F COS(F x) { EACH(::cos(x[k])); }
#else
// Cody-Waite reduction by pi/2 and minimax polynomials, for |x| < 1e4.
INLINE void sine_cosine(F x, F* s, F* c) {
  F t = x * 0.636619772f;
  M k = __builtin_convertvector(t + SELECT(x < 0.f, SPLAT(-0.5f), SPLAT(0.5f)), M); F n = __builtin_convertvector(k, F);
  F r = x - n * 1.5707855225f; r = r - n * 1.0804273188e-5f; r = r - n * 6.0770999344e-11f;
  F z = r * r;
  F sine = r + r * z * (-1.6666654611e-1f + z * (8.3321608736e-3f - z * 1.9515295891e-4f));
  F cosine = 1.f - 0.5f * z + z * z * (4.166664568298827e-2f + z * (-1.388731625493765e-3f + z * 2.443315711809948e-5f));
  M odd = (k & 1) != 0; F a = SELECT(odd, cosine, sine), b = SELECT(odd, sine, cosine);
  *s = SELECT((k & 2) != 0, -a, a); *c = SELECT(((k + 1) & 2) != 0, -b, b);
}
INLINE F SIN(F x) { F s, c; sine_cosine(x, &s, &c); return s; }
INLINE F COS(F x) { F s, c; sine_cosine(x, &s, &c); return c; }
#endif

#define ALARM(alarm, value) do { if (*(volatile int*)(alarm) < (value)) *(volatile int*)(alarm) = (value); } while (0)
#if LANE_COUNT == 1
#define READ(buffer, row) (F)(*(const F_anywhere*)(buffer + (size_t)(row) * stride + env))
#define WRITE(buffer, row, value) *(F_anywhere*)(buffer + (size_t)(row) * stride + env) = (value)
#define TEST(word, bit) __builtin_convertvector((*(const W_anywhere*)(word + env) & (bit)) != 0, M)
#define RAISE(word, condition, bit, alarm, value) do { \
  W raised = __builtin_convertvector(condition, W) & (bit) & ~*(const W_anywhere*)(word + env); \
  if (__builtin_reduce_or(raised)) { *(W_anywhere*)(word + env) |= raised; ALARM(alarm, value); } } while (0)
#define LANE_SUM(x) (x)
#define LANE_ANY(m) (m)
#else
#define READ(buffer, row) lane_read(buffer, row, stride, env)
#define WRITE(buffer, row, value) lane_write(buffer, row, stride, env, value)
#define WRITE_LANES WRITE
#define TEST(word, bit) ((M){} - (I1)((word[env] & (bit)) != 0))
#define RAISE(word, condition, bit, alarm, value) do { \
  if ((condition)[0] && !(word[env] & (bit))) { word[env] |= (bit); ALARM(alarm, value); } } while (0)
struct Rows { int row[WIDTH]; };
#define LANE_ROWS(...) Rows{{__VA_ARGS__}}
#define LANES(...) (F){__VA_ARGS__}
INLINE F lane_read(const T* b, int row, long stride, long env) { return SPLAT(b[row * stride + env]); }
INLINE F lane_read(const T* b, Rows rows, long stride, long env) { EACH(b[rows.row[k] * stride + env]); }
INLINE void lane_write(T* b, int row, long stride, long env, F value) { b[row * stride + env] = value[0]; }
INLINE void lane_write(T* b, Rows rows, long stride, long env, F value) { for (int k = 0; k < WIDTH; ++k) b[rows.row[k] * stride + env] = value[k]; }
INLINE F LANE_SUM(F x) {
  for (int bit = 1; bit < LANE_COUNT; bit *= 2) { F y; for (int k = 0; k < WIDTH; ++k) y[k] = x[k ^ bit]; x += y; }
  return x;
}
INLINE M LANE_ANY(M m) { return (M){} - (I1)ANY(m); }
#endif
