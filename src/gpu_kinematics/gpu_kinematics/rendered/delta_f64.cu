// Rendered from kernels.py by render.py; do not edit: python -m gpu_kinematics.render
#ifndef KERNEL_FUNCTION
#define KERNEL_FUNCTION static __device__ __forceinline__
#define KERNEL extern "C" __global__ void __launch_bounds__(128, 1)
#endif
typedef double T;
typedef long long I;
typedef unsigned short U;

KERNEL_FUNCTION void k_sincos(T a, T& r0, T& r1) {
  T b = ((fabs(a) <= 8192.0) ? a : 0.0);
  T k = rint((b * 0.6366197723675814));
  T r = (((b - (k * 1.5707963267341256)) - (k * 6.077100506303966e-11)) - (k * 2.0222662487959506e-21));
  T u = (r * r);
  T s = (r + ((r * u) * (((((1.5896795893785417e-10 * u + (-2.505075811994035e-08)) * u + 2.7557313691952215e-06) * u + (-0.00019841269829807924)) * u + 0.008333333333322413) * u + (-0.16666666666666632))));
  T c = ((1.0 - (0.5 * u)) + ((u * u) * ((((((-1.1359648753816349e-11) * u + 2.087572329327395e-09) * u + (-2.7557314352496e-07)) * u + 2.480158728948282e-05) * u + (-0.0013888888888874125)) * u + 0.0416666666666666)));
  T m = (k - (4.0 * rint((0.25 * k))));
  bool swap = ((m * m) == 1.0);
  T ss = (swap ? c : s);
  T cc = (swap ? s : c);
  T sine = (((m < 0.0) | (m > 1.5)) ? (-ss) : ss);
  T cosine = (((m > 0.5) | (m < (-1.5))) ? (-cc) : cc);
  r0 = sine;
  r1 = cosine;
}

KERNEL_FUNCTION T k_twice_atan(T y, T x) {
  T ay = fabs(y);
  T ax = fabs(x);
  bool low = (ay <= (0.41421356237309515 * ax));
  bool high = ((0.41421356237309515 * ay) >= ax);
  T num = (low ? ay : (high ? (-ax) : (ay - ax)));
  T den = (low ? ax : (high ? ay : (ay + ax)));
  T base = (low ? 0.0 : (high ? 1.5707963267948966 : 0.7853981633974483));
  T t = (num / ((den == 0.0) ? 1.0 : den));
  T u = (t * t);
  T v = (2.0 * (base + (t + ((t * u) * (((((((((((-0.017919393008239193) * u + 0.03807574429244452) * u + (-0.050397465726881106)) * u + 0.05847987549306512) * u + (-0.0666311753541818)) * u + 0.07692061395013734) * u + (-0.09090897823368566)) * u + 0.11111110785703805) * u + (-0.14285714280240314)) * u + 0.19999999999954007) * u + (-0.333333333333332))))));
  return ((((y < 0.0) & (x >= 0.0)) | ((y > 0.0) & (x < 0.0))) ? (-v) : v);
}

KERNEL_FUNCTION T k_cbrt(T x) {
  T r4 = sqrt(sqrt(x));
  T r16 = sqrt(sqrt(r4));
  T r64 = sqrt(sqrt(r16));
  T y = ((r4 * r16) * r64);
  T y3 = ((y * y) * y);
  y = (y * ((y3 + (2.0 * x)) / ((y3 == 0.0) ? 1.0 : ((2.0 * y3) + x))));
  y3 = ((y * y) * y);
  y = (y * ((y3 + (2.0 * x)) / ((y3 == 0.0) ? 1.0 : ((2.0 * y3) + x))));
  y3 = ((y * y) * y);
  y = (y * ((y3 + (2.0 * x)) / ((y3 == 0.0) ? 1.0 : ((2.0 * y3) + x))));
  return y;
}

KERNEL_FUNCTION void k_elbow(T R, T La, T c, T s, T a, T& r0, T& r1, T& r2, T& r3, T& r4) {
  T sa, ca;
  { T n_sa, n_ca; k_sincos(a, n_sa, n_ca); sa = n_sa; ca = n_ca; }
  T r = (R + (La * ca));
  r0 = (r * c);
  r1 = (r * s);
  r2 = (-(La * sa));
  r3 = sa;
  r4 = ca;
}

KERNEL_FUNCTION void k_cross3(T r1x, T r1y, T r1z, T r2x, T r2y, T r2z, T r3x, T r3y, T r3z, T& r0, T& r1, T& r2, T& r3, T& r4, T& r5, T& r6, T& r7, T& r8, T& r9) {
  T ax = ((r2y * r3z) - (r2z * r3y));
  T ay = ((r2z * r3x) - (r2x * r3z));
  T az = ((r2x * r3y) - (r2y * r3x));
  T bx = ((r3y * r1z) - (r3z * r1y));
  T by = ((r3z * r1x) - (r3x * r1z));
  T bz = ((r3x * r1y) - (r3y * r1x));
  T cx = ((r1y * r2z) - (r1z * r2y));
  T cy = ((r1z * r2x) - (r1x * r2z));
  T cz = ((r1x * r2y) - (r1y * r2x));
  r0 = ax;
  r1 = ay;
  r2 = az;
  r3 = bx;
  r4 = by;
  r5 = bz;
  r6 = cx;
  r7 = cy;
  r8 = cz;
  r9 = (((r1x * ax) + (r1y * ay)) + (r1z * az));
}

KERNEL_FUNCTION void k_sphere_meet(T R, T La, T Lb2, T down, T c1x, T c1y, T c1z, T c2x, T c2y, T c2z, T c3x, T c3y, T c3z, T ca1, T ca2, T ca3, T& r0, T& r1, T& r2, T& r3, T& r4) {
  T ux = (c2x - c1x);
  T uy = (c2y - c1y);
  T uz = (c2z - c1z);
  T vx = (c3x - c1x);
  T vy = (c3y - c1y);
  T vz = (c3z - c1z);
  T nx = ((uy * vz) - (uz * vy));
  T ny = ((uz * vx) - (ux * vz));
  T nz = ((ux * vy) - (uy * vx));
  T n2 = (((nx * nx) + (ny * ny)) + (nz * nz));
  T i2 = (1.0 / n2);
  T RLa = (R * La);
  T ku = ((RLa * (ca2 - ca1)) * i2);
  T kv = ((RLa * (ca3 - ca1)) * i2);
  T wx = ((ku * vx) - (kv * ux));
  T wy = ((ku * vy) - (kv * uy));
  T wz = ((ku * vz) - (kv * uz));
  T px = ((wy * nz) - (wz * ny));
  T py = ((wz * nx) - (wx * nz));
  T pz = ((wx * ny) - (wy * nx));
  T b = (((nx * c1x) + (ny * c1y)) + (nz * c1z));
  T side = (((((R * R) + (La * La)) - Lb2) + ((2.0 * RLa) * ca1)) + (((px * (px - (2.0 * c1x))) + (py * (py - (2.0 * c1y)))) + (pz * (pz - (2.0 * c1z)))));
  T rad = ((b * b) - (n2 * side));
  T w = (sqrt(rad) * ((nz < 0.0) ? (-down) : down));
  T l = ((b - w) * i2);
  T x = (px + (l * nx));
  T y = (py + (l * ny));
  T z = (pz + (l * nz));
  r0 = x;
  r1 = y;
  r2 = z;
  r3 = rad;
  r4 = n2;
}

KERNEL_FUNCTION void k_arm_angle(T A, T pp, T x, T y, T R, T iLa, T RoLa, T K, T c, T s, T e, T& r0, T& r1, T& r2) {
  T q = (2.0 * ((x * c) + (y * s)));
  T B = ((2.0 * R) - q);
  T C = ((K - (pp * iLa)) + (q * RoLa));
  T minus = (B - C);
  T plus = (B + C);
  T rad = ((A * A) + (minus * plus));
  T r = (e * sqrt(rad));
  bool near = ((e * A) <= 0.0);
  r0 = k_twice_atan((near ? minus : (A + r)), (near ? (r - A) : plus));
  r1 = rad;
  r2 = C;
}

KERNEL_FUNCTION T k_limit_bits(T a, T lo, T hi) {
  return (((a < lo) ? 4.0 : 0.0) + ((a > hi) ? 8.0 : 0.0));
}

KERNEL_FUNCTION T k_reach_bits(T rad, T C) {
  return ((rad >= 0.0) ? 0.0 : ((C < 0.0) ? 1.0 : ((C > 0.0) ? 2.0 : 0.0)));
}

KERNEL_FUNCTION T k_invalid_bits(bool valid, T R) {
  return ((valid ? 0.0 : 4096.0) + ((R == R) ? 0.0 : 32768.0));
}

KERNEL_FUNCTION void k_elbows(T R, T La, T c1, T s1, T c2, T s2, T c3, T s3, T a1, T a2, T a3, T& r0, T& r1, T& r2, T& r3, T& r4, T& r5, T& r6, T& r7, T& r8, T& r9, T& r10, T& r11, T& r12, T& r13, T& r14) {
  T c1x, c1y, c1z, sa1, ca1;
  { T n_c1x, n_c1y, n_c1z, n_sa1, n_ca1; k_elbow(R, La, c1, s1, a1, n_c1x, n_c1y, n_c1z, n_sa1, n_ca1); c1x = n_c1x; c1y = n_c1y; c1z = n_c1z; sa1 = n_sa1; ca1 = n_ca1; }
  T c2x, c2y, c2z, sa2, ca2;
  { T n_c2x, n_c2y, n_c2z, n_sa2, n_ca2; k_elbow(R, La, c2, s2, a2, n_c2x, n_c2y, n_c2z, n_sa2, n_ca2); c2x = n_c2x; c2y = n_c2y; c2z = n_c2z; sa2 = n_sa2; ca2 = n_ca2; }
  T c3x, c3y, c3z, sa3, ca3;
  { T n_c3x, n_c3y, n_c3z, n_sa3, n_ca3; k_elbow(R, La, c3, s3, a3, n_c3x, n_c3y, n_c3z, n_sa3, n_ca3); c3x = n_c3x; c3y = n_c3y; c3z = n_c3z; sa3 = n_sa3; ca3 = n_ca3; }
  r0 = c1x;
  r1 = c1y;
  r2 = c1z;
  r3 = c2x;
  r4 = c2y;
  r5 = c2z;
  r6 = c3x;
  r7 = c3y;
  r8 = c3z;
  r9 = sa1;
  r10 = ca1;
  r11 = sa2;
  r12 = ca2;
  r13 = sa3;
  r14 = ca3;
}

KERNEL_FUNCTION T k_three_limit_bits(T a1, T a2, T a3, T lo1, T lo2, T lo3, T hi1, T hi2, T hi3) {
  T first = (k_limit_bits(a1, lo1, hi1) + (16.0 * k_limit_bits(a2, lo2, hi2)));
  return (first + (256.0 * k_limit_bits(a3, lo3, hi3)));
}

KERNEL_FUNCTION void k_fk(T R, T La, T Lb2, T c1, T s1, T c2, T s2, T c3, T s3, T down, T lo1, T lo2, T lo3, T hi1, T hi2, T hi3, T a1, T a2, T a3, T& r0, T& r1, T& r2, T& r3) {
  T c1x, c1y, c1z, c2x, c2y, c2z, c3x, c3y, c3z, _sa1, ca1, _sa2, ca2, _sa3, ca3;
  { T n_c1x, n_c1y, n_c1z, n_c2x, n_c2y, n_c2z, n_c3x, n_c3y, n_c3z, n__sa1, n_ca1, n__sa2, n_ca2, n__sa3, n_ca3; k_elbows(R, La, c1, s1, c2, s2, c3, s3, a1, a2, a3, n_c1x, n_c1y, n_c1z, n_c2x, n_c2y, n_c2z, n_c3x, n_c3y, n_c3z, n__sa1, n_ca1, n__sa2, n_ca2, n__sa3, n_ca3); c1x = n_c1x; c1y = n_c1y; c1z = n_c1z; c2x = n_c2x; c2y = n_c2y; c2z = n_c2z; c3x = n_c3x; c3y = n_c3y; c3z = n_c3z; _sa1 = n__sa1; ca1 = n_ca1; _sa2 = n__sa2; ca2 = n_ca2; _sa3 = n__sa3; ca3 = n_ca3; }
  bool small = (((fabs(a1) <= 8192.0) & (fabs(a2) <= 8192.0)) & (fabs(a3) <= 8192.0));
  T x, y, z, rad, n2;
  { T n_x, n_y, n_z, n_rad, n_n2; k_sphere_meet(R, La, (small ? Lb2 : (-(((R * R) + (La * La)) + Lb2))), down, c1x, c1y, c1z, c2x, c2y, c2z, c3x, c3y, c3z, ca1, ca2, ca3, n_x, n_y, n_z, n_rad, n_n2); x = n_x; y = n_y; z = n_z; rad = n_rad; n2 = n_n2; }
  T invalid = k_invalid_bits(small, R);
  T meet = ((n2 == 0.0) ? 8192.0 : ((rad >= 0.0) ? 0.0 : 16384.0));
  T arms = k_three_limit_bits(a1, a2, a3, lo1, lo2, lo3, hi1, hi2, hi3);
  r0 = x;
  r1 = y;
  r2 = z;
  r3 = (arms + ((invalid == 0.0) ? meet : invalid));
}

KERNEL_FUNCTION void k_ik(T R, T iLa, T RoLa, T K, T c1, T s1, T c2, T s2, T c3, T s3, T e1, T e2, T e3, T lo1, T lo2, T lo3, T hi1, T hi2, T hi3, T x, T y, T z, T& r0, T& r1, T& r2, T& r3) {
  T A = (2.0 * z);
  T pp = (((x * x) + (y * y)) + (z * z));
  T a1, rad1, C1;
  { T n_a1, n_rad1, n_C1; k_arm_angle(A, pp, x, y, R, iLa, RoLa, K, c1, s1, e1, n_a1, n_rad1, n_C1); a1 = n_a1; rad1 = n_rad1; C1 = n_C1; }
  T a2, rad2, C2;
  { T n_a2, n_rad2, n_C2; k_arm_angle(A, pp, x, y, R, iLa, RoLa, K, c2, s2, e2, n_a2, n_rad2, n_C2); a2 = n_a2; rad2 = n_rad2; C2 = n_C2; }
  T a3, rad3, C3;
  { T n_a3, n_rad3, n_C3; k_arm_angle(A, pp, x, y, R, iLa, RoLa, K, c3, s3, e3, n_a3, n_rad3, n_C3); a3 = n_a3; rad3 = n_rad3; C3 = n_C3; }
  T total = (((x - x) + (y - y)) + (z - z));
  T invalid = k_invalid_bits((total == 0.0), R);
  T reach = ((k_reach_bits(rad1, C1) + (16.0 * k_reach_bits(rad2, C2))) + (256.0 * k_reach_bits(rad3, C3)));
  T arms = k_three_limit_bits(a1, a2, a3, lo1, lo2, lo3, hi1, hi2, hi3);
  r0 = a1;
  r1 = a2;
  r2 = a3;
  r3 = (arms + ((invalid == 0.0) ? reach : invalid));
}

KERNEL_FUNCTION T k_coupling(T La, T c, T s, T sa, T ca, T rx, T ry, T rz) {
  return ((-La) * ((((rx * c) + (ry * s)) * sa) + (rz * ca)));
}

KERNEL_FUNCTION void k_pose(T R, T La, T c1, T s1, T c2, T s2, T c3, T s3, T a1, T a2, T a3, T x, T y, T z, T& r0, T& r1, T& r2, T& r3, T& r4, T& r5, T& r6, T& r7, T& r8, T& r9, T& r10, T& r11, T& r12, T& r13, T& r14, T& r15, T& r16, T& r17) {
  T c1x, c1y, c1z, c2x, c2y, c2z, c3x, c3y, c3z, sa1, ca1, sa2, ca2, sa3, ca3;
  { T n_c1x, n_c1y, n_c1z, n_c2x, n_c2y, n_c2z, n_c3x, n_c3y, n_c3z, n_sa1, n_ca1, n_sa2, n_ca2, n_sa3, n_ca3; k_elbows(R, La, c1, s1, c2, s2, c3, s3, a1, a2, a3, n_c1x, n_c1y, n_c1z, n_c2x, n_c2y, n_c2z, n_c3x, n_c3y, n_c3z, n_sa1, n_ca1, n_sa2, n_ca2, n_sa3, n_ca3); c1x = n_c1x; c1y = n_c1y; c1z = n_c1z; c2x = n_c2x; c2y = n_c2y; c2z = n_c2z; c3x = n_c3x; c3y = n_c3y; c3z = n_c3z; sa1 = n_sa1; ca1 = n_ca1; sa2 = n_sa2; ca2 = n_ca2; sa3 = n_sa3; ca3 = n_ca3; }
  T r1x = (x - c1x);
  T r1y = (y - c1y);
  T r1z = (z - c1z);
  T r2x = (x - c2x);
  T r2y = (y - c2y);
  T r2z = (z - c2z);
  T r3x = (x - c3x);
  T r3y = (y - c3y);
  T r3z = (z - c3z);
  T k1 = k_coupling(La, c1, s1, sa1, ca1, r1x, r1y, r1z);
  T k2 = k_coupling(La, c2, s2, sa2, ca2, r2x, r2y, r2z);
  T k3 = k_coupling(La, c3, s3, sa3, ca3, r3x, r3y, r3z);
  r0 = r1x;
  r1 = r1y;
  r2 = r1z;
  r3 = r2x;
  r4 = r2y;
  r5 = r2z;
  r6 = r3x;
  r7 = r3y;
  r8 = r3z;
  r9 = k1;
  r10 = k2;
  r11 = k3;
  r12 = sa1;
  r13 = ca1;
  r14 = sa2;
  r15 = ca2;
  r16 = sa3;
  r17 = ca3;
}

KERNEL_FUNCTION void k_jacobian_rows(T k1, T k2, T k3, T r1x, T r1y, T r1z, T r2x, T r2y, T r2z, T r3x, T r3y, T r3z, T& r0, T& r1, T& r2, T& r3, T& r4, T& r5, T& r6, T& r7, T& r8, T& r9) {
  T ax, ay, az, bx, by, bz, cx, cy, cz, det;
  { T n_ax, n_ay, n_az, n_bx, n_by, n_bz, n_cx, n_cy, n_cz, n_det; k_cross3(r1x, r1y, r1z, r2x, r2y, r2z, r3x, r3y, r3z, n_ax, n_ay, n_az, n_bx, n_by, n_bz, n_cx, n_cy, n_cz, n_det); ax = n_ax; ay = n_ay; az = n_az; bx = n_bx; by = n_by; bz = n_bz; cx = n_cx; cy = n_cy; cz = n_cz; det = n_det; }
  T f1 = (k1 / det);
  T f2 = (k2 / det);
  T f3 = (k3 / det);
  r0 = (f1 * ax);
  r1 = (f2 * bx);
  r2 = (f3 * cx);
  r3 = (f1 * ay);
  r4 = (f2 * by);
  r5 = (f3 * cy);
  r6 = (f1 * az);
  r7 = (f2 * bz);
  r8 = (f3 * cz);
  r9 = det;
}

KERNEL_FUNCTION void k_jacobian(T R, T La, T Lb, T Lb2, T c1, T s1, T c2, T s2, T c3, T s3, T down, T lo1, T lo2, T lo3, T hi1, T hi2, T hi3, T tol, T a1, T a2, T a3, T& r0, T& r1, T& r2, T& r3, T& r4, T& r5, T& r6, T& r7, T& r8, T& r9, T& r10, T& r11, T& r12) {
  T x, y, z, status;
  { T n_x, n_y, n_z, n_status; k_fk(R, La, Lb2, c1, s1, c2, s2, c3, s3, down, lo1, lo2, lo3, hi1, hi2, hi3, a1, a2, a3, n_x, n_y, n_z, n_status); x = n_x; y = n_y; z = n_z; status = n_status; }
  T r1x, r1y, r1z, r2x, r2y, r2z, r3x, r3y, r3z, k1, k2, k3, _sa1, _ca1, _sa2, _ca2, _sa3, _ca3;
  { T n_r1x, n_r1y, n_r1z, n_r2x, n_r2y, n_r2z, n_r3x, n_r3y, n_r3z, n_k1, n_k2, n_k3, n__sa1, n__ca1, n__sa2, n__ca2, n__sa3, n__ca3; k_pose(R, La, c1, s1, c2, s2, c3, s3, a1, a2, a3, x, y, z, n_r1x, n_r1y, n_r1z, n_r2x, n_r2y, n_r2z, n_r3x, n_r3y, n_r3z, n_k1, n_k2, n_k3, n__sa1, n__ca1, n__sa2, n__ca2, n__sa3, n__ca3); r1x = n_r1x; r1y = n_r1y; r1z = n_r1z; r2x = n_r2x; r2y = n_r2y; r2z = n_r2z; r3x = n_r3x; r3y = n_r3y; r3z = n_r3z; k1 = n_k1; k2 = n_k2; k3 = n_k3; _sa1 = n__sa1; _ca1 = n__ca1; _sa2 = n__sa2; _ca2 = n__ca2; _sa3 = n__sa3; _ca3 = n__ca3; }
  T j11, j12, j13, j21, j22, j23, j31, j32, j33, det;
  { T n_j11, n_j12, n_j13, n_j21, n_j22, n_j23, n_j31, n_j32, n_j33, n_det; k_jacobian_rows(k1, k2, k3, r1x, r1y, r1z, r2x, r2y, r2z, r3x, r3y, r3z, n_j11, n_j12, n_j13, n_j21, n_j22, n_j23, n_j31, n_j32, n_j33, n_det); j11 = n_j11; j12 = n_j12; j13 = n_j13; j21 = n_j21; j22 = n_j22; j23 = n_j23; j31 = n_j31; j32 = n_j32; j33 = n_j33; det = n_det; }
  bool flat = ((status < 4096.0) & (fabs(det) <= (tol * (Lb * Lb2))));
  status = (status + (flat ? 8192.0 : 0.0));
  r0 = x;
  r1 = y;
  r2 = z;
  r3 = j11;
  r4 = j12;
  r5 = j13;
  r6 = j21;
  r7 = j22;
  r8 = j23;
  r9 = j31;
  r10 = j32;
  r11 = j33;
  r12 = status;
}

KERNEL_FUNCTION void k_rotate_columns(T ax, T ay, T az, T bx, T by, T bz, T& r0, T& r1, T& r2, T& r3, T& r4, T& r5) {
  T alpha = (((ax * ax) + (ay * ay)) + (az * az));
  T beta = (((bx * bx) + (by * by)) + (bz * bz));
  T gamma = (((ax * bx) + (ay * by)) + (az * bz));
  T zeta = ((beta - alpha) / (2.0 * ((gamma == 0.0) ? 1.0 : gamma)));
  T root = (fabs(zeta) + sqrt((1.0 + (zeta * zeta))));
  T t = ((gamma == 0.0) ? 0.0 : (((zeta < 0.0) ? (-1.0) : 1.0) / root));
  T c = (1.0 / sqrt((1.0 + (t * t))));
  T s = (c * t);
  r0 = ((c * ax) - (s * bx));
  r1 = ((c * ay) - (s * by));
  r2 = ((c * az) - (s * bz));
  r3 = ((s * ax) + (c * bx));
  r4 = ((s * ay) + (c * by));
  r5 = ((s * az) + (c * bz));
}

KERNEL_FUNCTION void k_measures_at(T R, T La, T Lb, T Lb2, T iLa, T c1, T s1, T c2, T s2, T c3, T s3, T a1, T a2, T a3, T x, T y, T z, T& r0, T& r1, T& r2, T& r3, T& r4, T& r5, T& r6, T& r7) {
  T r1x, r1y, r1z, r2x, r2y, r2z, r3x, r3y, r3z, k1, k2, k3, _sa1, _ca1, _sa2, _ca2, _sa3, _ca3;
  { T n_r1x, n_r1y, n_r1z, n_r2x, n_r2y, n_r2z, n_r3x, n_r3y, n_r3z, n_k1, n_k2, n_k3, n__sa1, n__ca1, n__sa2, n__ca2, n__sa3, n__ca3; k_pose(R, La, c1, s1, c2, s2, c3, s3, a1, a2, a3, x, y, z, n_r1x, n_r1y, n_r1z, n_r2x, n_r2y, n_r2z, n_r3x, n_r3y, n_r3z, n_k1, n_k2, n_k3, n__sa1, n__ca1, n__sa2, n__ca2, n__sa3, n__ca3); r1x = n_r1x; r1y = n_r1y; r1z = n_r1z; r2x = n_r2x; r2y = n_r2y; r2z = n_r2z; r3x = n_r3x; r3y = n_r3y; r3z = n_r3z; k1 = n_k1; k2 = n_k2; k3 = n_k3; _sa1 = n__sa1; _ca1 = n__ca1; _sa2 = n__sa2; _ca2 = n__ca2; _sa3 = n__sa3; _ca3 = n__ca3; }
  T ax, bx, cx, ay, by, cy, az, bz, cz, det;
  { T n_ax, n_bx, n_cx, n_ay, n_by, n_cy, n_az, n_bz, n_cz, n_det; k_jacobian_rows(k1, k2, k3, r1x, r1y, r1z, r2x, r2y, r2z, r3x, r3y, r3z, n_ax, n_bx, n_cx, n_ay, n_by, n_cy, n_az, n_bz, n_cz, n_det); ax = n_ax; bx = n_bx; cx = n_cx; ay = n_ay; by = n_by; cy = n_cy; az = n_az; bz = n_bz; cz = n_cz; det = n_det; }
  { T n_ax, n_ay, n_az, n_bx, n_by, n_bz; k_rotate_columns(ax, ay, az, bx, by, bz, n_ax, n_ay, n_az, n_bx, n_by, n_bz); ax = n_ax; ay = n_ay; az = n_az; bx = n_bx; by = n_by; bz = n_bz; }
  { T n_ax, n_ay, n_az, n_cx, n_cy, n_cz; k_rotate_columns(ax, ay, az, cx, cy, cz, n_ax, n_ay, n_az, n_cx, n_cy, n_cz); ax = n_ax; ay = n_ay; az = n_az; cx = n_cx; cy = n_cy; cz = n_cz; }
  { T n_bx, n_by, n_bz, n_cx, n_cy, n_cz; k_rotate_columns(bx, by, bz, cx, cy, cz, n_bx, n_by, n_bz, n_cx, n_cy, n_cz); bx = n_bx; by = n_by; bz = n_bz; cx = n_cx; cy = n_cy; cz = n_cz; }
  { T n_ax, n_ay, n_az, n_bx, n_by, n_bz; k_rotate_columns(ax, ay, az, bx, by, bz, n_ax, n_ay, n_az, n_bx, n_by, n_bz); ax = n_ax; ay = n_ay; az = n_az; bx = n_bx; by = n_by; bz = n_bz; }
  { T n_ax, n_ay, n_az, n_cx, n_cy, n_cz; k_rotate_columns(ax, ay, az, cx, cy, cz, n_ax, n_ay, n_az, n_cx, n_cy, n_cz); ax = n_ax; ay = n_ay; az = n_az; cx = n_cx; cy = n_cy; cz = n_cz; }
  { T n_bx, n_by, n_bz, n_cx, n_cy, n_cz; k_rotate_columns(bx, by, bz, cx, cy, cz, n_bx, n_by, n_bz, n_cx, n_cy, n_cz); bx = n_bx; by = n_by; bz = n_bz; cx = n_cx; cy = n_cy; cz = n_cz; }
  { T n_ax, n_ay, n_az, n_bx, n_by, n_bz; k_rotate_columns(ax, ay, az, bx, by, bz, n_ax, n_ay, n_az, n_bx, n_by, n_bz); ax = n_ax; ay = n_ay; az = n_az; bx = n_bx; by = n_by; bz = n_bz; }
  { T n_ax, n_ay, n_az, n_cx, n_cy, n_cz; k_rotate_columns(ax, ay, az, cx, cy, cz, n_ax, n_ay, n_az, n_cx, n_cy, n_cz); ax = n_ax; ay = n_ay; az = n_az; cx = n_cx; cy = n_cy; cz = n_cz; }
  { T n_bx, n_by, n_bz, n_cx, n_cy, n_cz; k_rotate_columns(bx, by, bz, cx, cy, cz, n_bx, n_by, n_bz, n_cx, n_cy, n_cz); bx = n_bx; by = n_by; bz = n_bz; cx = n_cx; cy = n_cy; cz = n_cz; }
  { T n_ax, n_ay, n_az, n_bx, n_by, n_bz; k_rotate_columns(ax, ay, az, bx, by, bz, n_ax, n_ay, n_az, n_bx, n_by, n_bz); ax = n_ax; ay = n_ay; az = n_az; bx = n_bx; by = n_by; bz = n_bz; }
  { T n_ax, n_ay, n_az, n_cx, n_cy, n_cz; k_rotate_columns(ax, ay, az, cx, cy, cz, n_ax, n_ay, n_az, n_cx, n_cy, n_cz); ax = n_ax; ay = n_ay; az = n_az; cx = n_cx; cy = n_cy; cz = n_cz; }
  { T n_bx, n_by, n_bz, n_cx, n_cy, n_cz; k_rotate_columns(bx, by, bz, cx, cy, cz, n_bx, n_by, n_bz, n_cx, n_cy, n_cz); bx = n_bx; by = n_by; bz = n_bz; cx = n_cx; cy = n_cy; cz = n_cz; }
  T n1 = sqrt((((ax * ax) + (ay * ay)) + (az * az)));
  T n2 = sqrt((((bx * bx) + (by * by)) + (bz * bz)));
  T n3 = sqrt((((cx * cx) + (cy * cy)) + (cz * cz)));
  T low = ((n1 < n2) ? n1 : n2);
  T high = ((n1 < n2) ? n2 : n1);
  T smin = ((n3 < low) ? n3 : low);
  T smax = ((n3 > high) ? n3 : high);
  T product = ((k1 * k2) * k3);
  bool flat = ((det == 0.0) | (product == 0.0));
  T cond = ((flat ? 1.0 : smax) / (flat ? 0.0 : smin));
  T iLb = (1.0 / Lb);
  T unit = (iLa * iLb);
  T parallel = (((det * iLb) * iLb) * iLb);
  T serial = (((k1 * unit) * (k2 * unit)) * (k3 * unit));
  r0 = cond;
  r1 = smin;
  r2 = smax;
  r3 = det;
  r4 = product;
  r5 = (product / det);
  r6 = parallel;
  r7 = serial;
}

KERNEL_FUNCTION T k_singular_bit(T status, T tol, T parallel, T serial) {
  bool close = ((fabs(parallel) <= tol) | (fabs(serial) <= tol));
  return (((status < 4096.0) & close) ? 8192.0 : 0.0);
}

KERNEL_FUNCTION void k_measures(T R, T La, T Lb, T Lb2, T iLa, T c1, T s1, T c2, T s2, T c3, T s3, T down, T lo1, T lo2, T lo3, T hi1, T hi2, T hi3, T tol, T a1, T a2, T a3, T& r0, T& r1, T& r2, T& r3, T& r4, T& r5, T& r6, T& r7, T& r8) {
  T x, y, z, status;
  { T n_x, n_y, n_z, n_status; k_fk(R, La, Lb2, c1, s1, c2, s2, c3, s3, down, lo1, lo2, lo3, hi1, hi2, hi3, a1, a2, a3, n_x, n_y, n_z, n_status); x = n_x; y = n_y; z = n_z; status = n_status; }
  T cond, smin, smax, detx, detq, detj, parallel, serial;
  { T n_cond, n_smin, n_smax, n_detx, n_detq, n_detj, n_parallel, n_serial; k_measures_at(R, La, Lb, Lb2, iLa, c1, s1, c2, s2, c3, s3, a1, a2, a3, x, y, z, n_cond, n_smin, n_smax, n_detx, n_detq, n_detj, n_parallel, n_serial); cond = n_cond; smin = n_smin; smax = n_smax; detx = n_detx; detq = n_detq; detj = n_detj; parallel = n_parallel; serial = n_serial; }
  status = (status + k_singular_bit(status, tol, parallel, serial));
  r0 = cond;
  r1 = smin;
  r2 = smax;
  r3 = detx;
  r4 = detq;
  r5 = detj;
  r6 = parallel;
  r7 = serial;
  r8 = status;
}

KERNEL_FUNCTION void k_dexterity(T R, T La, T Lb, T Lb2, T iLa, T RoLa, T K, T c1, T s1, T c2, T s2, T c3, T s3, T e1, T e2, T e3, T lo1, T lo2, T lo3, T hi1, T hi2, T hi3, T tol, T x, T y, T z, T& r0, T& r1, T& r2, T& r3, T& r4, T& r5, T& r6, T& r7, T& r8) {
  T a1, a2, a3, status;
  { T n_a1, n_a2, n_a3, n_status; k_ik(R, iLa, RoLa, K, c1, s1, c2, s2, c3, s3, e1, e2, e3, lo1, lo2, lo3, hi1, hi2, hi3, x, y, z, n_a1, n_a2, n_a3, n_status); a1 = n_a1; a2 = n_a2; a3 = n_a3; status = n_status; }
  T cond, smin, smax, detx, detq, detj, parallel, serial;
  { T n_cond, n_smin, n_smax, n_detx, n_detq, n_detj, n_parallel, n_serial; k_measures_at(R, La, Lb, Lb2, iLa, c1, s1, c2, s2, c3, s3, a1, a2, a3, x, y, z, n_cond, n_smin, n_smax, n_detx, n_detq, n_detj, n_parallel, n_serial); cond = n_cond; smin = n_smin; smax = n_smax; detx = n_detx; detq = n_detq; detj = n_detj; parallel = n_parallel; serial = n_serial; }
  status = (status + k_singular_bit(status, tol, parallel, serial));
  r0 = cond;
  r1 = smin;
  r2 = smax;
  r3 = detx;
  r4 = detq;
  r5 = detj;
  r6 = parallel;
  r7 = serial;
  r8 = status;
}

KERNEL_FUNCTION T k_arm_load(T La, T c, T s, T sa, T ca, T rx, T ry, T rz, T vx, T vy, T vz, T w) {
  T lw = (La * w);
  T ex = (vx + ((lw * sa) * c));
  T ey = (vy + ((lw * sa) * s));
  T ez = (vz + (lw * ca));
  T bend = ((-(lw * w)) * ((ca * ((rx * c) + (ry * s))) - (sa * rz)));
  return (bend - (((ex * ex) + (ey * ey)) + (ez * ez)));
}

KERNEL_FUNCTION void k_fk_motion(T R, T La, T Lb, T Lb2, T c1, T s1, T c2, T s2, T c3, T s3, T down, T lo1, T lo2, T lo3, T hi1, T hi2, T hi3, T tol, T a1, T a2, T a3, T w1, T w2, T w3, T q1, T q2, T q3, T& r0, T& r1, T& r2, T& r3, T& r4, T& r5, T& r6, T& r7, T& r8, T& r9) {
  T x, y, z, status;
  { T n_x, n_y, n_z, n_status; k_fk(R, La, Lb2, c1, s1, c2, s2, c3, s3, down, lo1, lo2, lo3, hi1, hi2, hi3, a1, a2, a3, n_x, n_y, n_z, n_status); x = n_x; y = n_y; z = n_z; status = n_status; }
  T r1x, r1y, r1z, r2x, r2y, r2z, r3x, r3y, r3z, k1, k2, k3, sa1, ca1, sa2, ca2, sa3, ca3;
  { T n_r1x, n_r1y, n_r1z, n_r2x, n_r2y, n_r2z, n_r3x, n_r3y, n_r3z, n_k1, n_k2, n_k3, n_sa1, n_ca1, n_sa2, n_ca2, n_sa3, n_ca3; k_pose(R, La, c1, s1, c2, s2, c3, s3, a1, a2, a3, x, y, z, n_r1x, n_r1y, n_r1z, n_r2x, n_r2y, n_r2z, n_r3x, n_r3y, n_r3z, n_k1, n_k2, n_k3, n_sa1, n_ca1, n_sa2, n_ca2, n_sa3, n_ca3); r1x = n_r1x; r1y = n_r1y; r1z = n_r1z; r2x = n_r2x; r2y = n_r2y; r2z = n_r2z; r3x = n_r3x; r3y = n_r3y; r3z = n_r3z; k1 = n_k1; k2 = n_k2; k3 = n_k3; sa1 = n_sa1; ca1 = n_ca1; sa2 = n_sa2; ca2 = n_ca2; sa3 = n_sa3; ca3 = n_ca3; }
  T ax, ay, az, bx, by, bz, cx, cy, cz, det;
  { T n_ax, n_ay, n_az, n_bx, n_by, n_bz, n_cx, n_cy, n_cz, n_det; k_cross3(r1x, r1y, r1z, r2x, r2y, r2z, r3x, r3y, r3z, n_ax, n_ay, n_az, n_bx, n_by, n_bz, n_cx, n_cy, n_cz, n_det); ax = n_ax; ay = n_ay; az = n_az; bx = n_bx; by = n_by; bz = n_bz; cx = n_cx; cy = n_cy; cz = n_cz; det = n_det; }
  T f1 = (k1 * w1);
  T f2 = (k2 * w2);
  T f3 = (k3 * w3);
  T vx = ((((f1 * ax) + (f2 * bx)) + (f3 * cx)) / det);
  T vy = ((((f1 * ay) + (f2 * by)) + (f3 * cy)) / det);
  T vz = ((((f1 * az) + (f2 * bz)) + (f3 * cz)) / det);
  T g1 = ((k1 * q1) + k_arm_load(La, c1, s1, sa1, ca1, r1x, r1y, r1z, vx, vy, vz, w1));
  T g2 = ((k2 * q2) + k_arm_load(La, c2, s2, sa2, ca2, r2x, r2y, r2z, vx, vy, vz, w2));
  T g3 = ((k3 * q3) + k_arm_load(La, c3, s3, sa3, ca3, r3x, r3y, r3z, vx, vy, vz, w3));
  T ux = ((((g1 * ax) + (g2 * bx)) + (g3 * cx)) / det);
  T uy = ((((g1 * ay) + (g2 * by)) + (g3 * cy)) / det);
  T uz = ((((g1 * az) + (g2 * bz)) + (g3 * cz)) / det);
  bool finite = ((((ux - ux) + (uy - uy)) + (uz - uz)) == 0.0);
  bool flat = ((status < 4096.0) & (fabs(det) <= (tol * (Lb * Lb2))));
  T bad = (((status < 4096.0) & finite) ? 0.0 : ((status < 4096.0) ? 4096.0 : 0.0));
  status = (status + (flat ? 8192.0 : bad));
  r0 = x;
  r1 = y;
  r2 = z;
  r3 = vx;
  r4 = vy;
  r5 = vz;
  r6 = ux;
  r7 = uy;
  r8 = uz;
  r9 = status;
}

KERNEL_FUNCTION void k_ik_motion(T R, T La, T Lb, T iLa, T RoLa, T K, T c1, T s1, T c2, T s2, T c3, T s3, T e1, T e2, T e3, T lo1, T lo2, T lo3, T hi1, T hi2, T hi3, T tol, T x, T y, T z, T vx, T vy, T vz, T ux, T uy, T uz, T& r0, T& r1, T& r2, T& r3, T& r4, T& r5, T& r6, T& r7, T& r8, T& r9) {
  T a1, a2, a3, status;
  { T n_a1, n_a2, n_a3, n_status; k_ik(R, iLa, RoLa, K, c1, s1, c2, s2, c3, s3, e1, e2, e3, lo1, lo2, lo3, hi1, hi2, hi3, x, y, z, n_a1, n_a2, n_a3, n_status); a1 = n_a1; a2 = n_a2; a3 = n_a3; status = n_status; }
  T r1x, r1y, r1z, r2x, r2y, r2z, r3x, r3y, r3z, k1, k2, k3, sa1, ca1, sa2, ca2, sa3, ca3;
  { T n_r1x, n_r1y, n_r1z, n_r2x, n_r2y, n_r2z, n_r3x, n_r3y, n_r3z, n_k1, n_k2, n_k3, n_sa1, n_ca1, n_sa2, n_ca2, n_sa3, n_ca3; k_pose(R, La, c1, s1, c2, s2, c3, s3, a1, a2, a3, x, y, z, n_r1x, n_r1y, n_r1z, n_r2x, n_r2y, n_r2z, n_r3x, n_r3y, n_r3z, n_k1, n_k2, n_k3, n_sa1, n_ca1, n_sa2, n_ca2, n_sa3, n_ca3); r1x = n_r1x; r1y = n_r1y; r1z = n_r1z; r2x = n_r2x; r2y = n_r2y; r2z = n_r2z; r3x = n_r3x; r3y = n_r3y; r3z = n_r3z; k1 = n_k1; k2 = n_k2; k3 = n_k3; sa1 = n_sa1; ca1 = n_ca1; sa2 = n_sa2; ca2 = n_ca2; sa3 = n_sa3; ca3 = n_ca3; }
  T w1 = ((((r1x * vx) + (r1y * vy)) + (r1z * vz)) / k1);
  T w2 = ((((r2x * vx) + (r2y * vy)) + (r2z * vz)) / k2);
  T w3 = ((((r3x * vx) + (r3y * vy)) + (r3z * vz)) / k3);
  T m1 = k_arm_load(La, c1, s1, sa1, ca1, r1x, r1y, r1z, vx, vy, vz, w1);
  T m2 = k_arm_load(La, c2, s2, sa2, ca2, r2x, r2y, r2z, vx, vy, vz, w2);
  T m3 = k_arm_load(La, c3, s3, sa3, ca3, r3x, r3y, r3z, vx, vy, vz, w3);
  T q1 = (((((r1x * ux) + (r1y * uy)) + (r1z * uz)) - m1) / k1);
  T q2 = (((((r2x * ux) + (r2y * uy)) + (r2z * uz)) - m2) / k2);
  T q3 = (((((r3x * ux) + (r3y * uy)) + (r3z * uz)) - m3) / k3);
  T edge = (tol * (La * Lb));
  bool flat = (((fabs(k1) <= edge) | (fabs(k2) <= edge)) | (fabs(k3) <= edge));
  bool moving = (((((vx - vx) + (vy - vy)) + ((vz - vz) + (ux - ux))) + ((uy - uy) + (uz - uz))) == 0.0);
  bool reachable = (((a1 == a1) & (a2 == a2)) & (a3 == a3));
  T extra = (moving ? ((reachable & flat) ? 8192.0 : 0.0) : 4096.0);
  r0 = a1;
  r1 = a2;
  r2 = a3;
  r3 = w1;
  r4 = w2;
  r5 = w3;
  r6 = q1;
  r7 = q2;
  r8 = q3;
  r9 = (status + ((status < 4096.0) ? extra : 0.0));
}

KERNEL_FUNCTION void k_profile(T L, T v, T a, T j, T& r0, T& r1, T& r2, T& r3) {
  T Ts = sqrt((v / j));
  T Tc = (a / j);
  T Tj = ((Ts < Tc) ? Ts : Tc);
  T Ta = (Tj + (v / (j * Tj)));
  T Tv = ((L / v) - Ta);
  bool cruise = (Tv > 0.0);
  bool wide = (((2.0 * a) * (Tc * Tc)) <= L);
  T Tn = k_cbrt((L / (2.0 * j)));
  T half = (0.5 * Tc);
  T Tw = (half + sqrt(((half * half) + (L / a))));
  Tj = (cruise ? Tj : (wide ? Tc : Tn));
  Ta = (cruise ? Ta : (wide ? Tw : (2.0 * Tn)));
  Tv = (cruise ? Tv : 0.0);
  r0 = Tj;
  r1 = Ta;
  r2 = Tv;
  r3 = ((L > 0.0) ? (j / ((L > 0.0) ? L : 1.0)) : 0.0);
}

KERNEL_FUNCTION void k_ramp(T t, T Tj, T Ta, T Tv, T j, T& r0, T& r1, T& r2) {
  T Tp = ((2.0 * Ta) + Tv);
  t = ((t > 0.0) ? t : 0.0);
  t = ((t < Tp) ? t : Tp);
  bool late = ((2.0 * t) > Tp);
  t = (late ? (Tp - t) : t);
  T ap = (j * Tj);
  T vp = (ap * (Ta - Tj));
  T u = (Ta - t);
  bool in1 = (t < Tj);
  bool in2 = (u > Tj);
  bool in3 = (u > 0.0);
  T s1 = ((((j * t) * t) * t) / 6.0);
  T s2 = (ap * (((0.5 * t) * (t - Tj)) + ((Tj * Tj) / 6.0)));
  T s3 = ((0.5 * (vp * Ta)) - ((vp * u) - ((((j * u) * u) * u) / 6.0)));
  T s4 = ((0.5 * (vp * Ta)) - (vp * u));
  T s = (in1 ? s1 : (in2 ? s2 : (in3 ? s3 : s4)));
  T d1 = (((0.5 * j) * t) * t);
  T d2 = (ap * (t - (0.5 * Tj)));
  T d3 = (vp - (((0.5 * j) * u) * u));
  T d = (in1 ? d1 : (in2 ? d2 : (in3 ? d3 : vp)));
  T f = (in1 ? (j * t) : (in2 ? ap : (in3 ? (j * u) : 0.0)));
  bool still = (j == 0.0);
  s = (still ? 0.0 : (late ? (1.0 - s) : s));
  r0 = s;
  r1 = (still ? 0.0 : d);
  r2 = (still ? 0.0 : (late ? (-f) : f));
}

KERNEL_FUNCTION void k_plan(T x0, T y0, T z0, T x1, T y1, T z1, T kind, T height, T overlap, T pause, T vmax, T amax, T jmax, T scale, T& r0, T& r1, T& r2, T& r3, T& r4, T& r5, T& r6, T& r7, T& r8, T& r9, T& r10, T& r11, T& r12, T& r13, T& r14, T& r15, T& r16, T& r17, T& r18, T& r19, T& r20, T& r21, T& r22, T& r23, T& r24, T& r25, T& r26) {
  bool line = (kind < 0.5);
  T top = (((z0 > z1) ? z0 : z1) + height);
  T h1 = (line ? 0.0 : (top - z0));
  T h3 = (line ? 0.0 : (top - z1));
  T dx = (x1 - x0);
  T dy = (y1 - y0);
  T dz = (line ? (z1 - z0) : 0.0);
  T d = sqrt((((dx * dx) + (dy * dy)) + (dz * dz)));
  T Tj1, Ta1, Tv1, j1;
  { T n_Tj1, n_Ta1, n_Tv1, n_j1; k_profile(h1, vmax, amax, jmax, n_Tj1, n_Ta1, n_Tv1, n_j1); Tj1 = n_Tj1; Ta1 = n_Ta1; Tv1 = n_Tv1; j1 = n_j1; }
  T Tj2, Ta2, Tv2, j2;
  { T n_Tj2, n_Ta2, n_Tv2, n_j2; k_profile(d, vmax, amax, jmax, n_Tj2, n_Ta2, n_Tv2, n_j2); Tj2 = n_Tj2; Ta2 = n_Ta2; Tv2 = n_Tv2; j2 = n_j2; }
  T Tj3, Ta3, Tv3, j3;
  { T n_Tj3, n_Ta3, n_Tv3, n_j3; k_profile(h3, vmax, amax, jmax, n_Tj3, n_Ta3, n_Tv3, n_j3); Tj3 = n_Tj3; Ta3 = n_Ta3; Tv3 = n_Tv3; j3 = n_j3; }
  T T1 = ((2.0 * Ta1) + Tv1);
  T T2 = ((2.0 * Ta2) + Tv2);
  T T3 = ((2.0 * Ta3) + Tv3);
  T t2 = (T1 - (overlap * Ta1));
  T t3 = ((t2 + T2) - (overlap * Ta3));
  t3 = ((t3 > T1) ? t3 : T1);
  T end2 = (t2 + T2);
  T end3 = (t3 + T3);
  T Tp = ((end3 > end2) ? end3 : end2);
  T cyclic = ((kind > 1.5) ? 1.0 : 0.0);
  T duration = ((kind > 1.5) ? (2.0 * ((Tp * scale) + pause)) : (Tp * scale));
  r0 = x0;
  r1 = y0;
  r2 = z0;
  r3 = dx;
  r4 = dy;
  r5 = dz;
  r6 = h1;
  r7 = h3;
  r8 = Tj1;
  r9 = Ta1;
  r10 = Tv1;
  r11 = j1;
  r12 = t2;
  r13 = Tj2;
  r14 = Ta2;
  r15 = Tv2;
  r16 = j2;
  r17 = t3;
  r18 = Tj3;
  r19 = Ta3;
  r20 = Tv3;
  r21 = j3;
  r22 = Tp;
  r23 = pause;
  r24 = cyclic;
  r25 = scale;
  r26 = duration;
}

KERNEL_FUNCTION void k_path_clock(T t, T Tp, T dwell, T cyclic, T lam, T& r0, T& r1) {
  T tau = (t / lam);
  T wait = (dwell / lam);
  T half = (Tp + wait);
  T turn = (2.0 * half);
  T q = (tau / ((turn > 0.0) ? turn : 1.0));
  T k = rint(q);
  T lap = (tau - (turn * ((k > q) ? (k - 1.0) : k)));
  T back = (lap - half);
  T forth = ((lap < Tp) ? lap : Tp);
  T home = ((back < Tp) ? (Tp - back) : 0.0);
  T looped = ((back < 0.0) ? forth : home);
  T way = ((back < 0.0) ? ((lap < Tp) ? 1.0 : 0.0) : ((back < Tp) ? (-1.0) : 0.0));
  r0 = ((cyclic > 0.5) ? looped : tau);
  r1 = ((cyclic > 0.5) ? way : 1.0);
}

KERNEL_FUNCTION void k_trajectory(T R, T La, T Lb, T iLa, T RoLa, T K, T c1, T s1, T c2, T s2, T c3, T s3, T e1, T e2, T e3, T lo1, T lo2, T lo3, T hi1, T hi2, T hi3, T tol, T t, T x0, T y0, T z0, T dx, T dy, T dz, T h1, T h3, T Tj1, T Ta1, T Tv1, T j1, T t2, T Tj2, T Ta2, T Tv2, T j2, T t3, T Tj3, T Ta3, T Tv3, T j3, T Tp, T dwell, T cyclic, T lam, T& r0, T& r1, T& r2, T& r3, T& r4, T& r5, T& r6, T& r7, T& r8, T& r9, T& r10, T& r11, T& r12, T& r13, T& r14, T& r15, T& r16, T& r17, T& r18) {
  T tau, way;
  { T n_tau, n_way; k_path_clock(t, Tp, dwell, cyclic, lam, n_tau, n_way); tau = n_tau; way = n_way; }
  T p1, v1, f1;
  { T n_p1, n_v1, n_f1; k_ramp(tau, Tj1, Ta1, Tv1, j1, n_p1, n_v1, n_f1); p1 = n_p1; v1 = n_v1; f1 = n_f1; }
  T p2, v2, f2;
  { T n_p2, n_v2, n_f2; k_ramp((tau - t2), Tj2, Ta2, Tv2, j2, n_p2, n_v2, n_f2); p2 = n_p2; v2 = n_v2; f2 = n_f2; }
  T p3, v3, f3;
  { T n_p3, n_v3, n_f3; k_ramp((tau - t3), Tj3, Ta3, Tv3, j3, n_p3, n_v3, n_f3); p3 = n_p3; v3 = n_v3; f3 = n_f3; }
  T speed = (way / lam);
  T push = ((way * way) / (lam * lam));
  T x = (x0 + (dx * p2));
  T y = (y0 + (dy * p2));
  T z = (((z0 + (dz * p2)) + (h1 * p1)) - (h3 * p3));
  T vx = ((dx * v2) * speed);
  T vy = ((dy * v2) * speed);
  T vz = ((((dz * v2) + (h1 * v1)) - (h3 * v3)) * speed);
  T ux = ((dx * f2) * push);
  T uy = ((dy * f2) * push);
  T uz = ((((dz * f2) + (h1 * f1)) - (h3 * f3)) * push);
  T a1, a2, a3, w1, w2, w3, q1, q2, q3, status;
  { T n_a1, n_a2, n_a3, n_w1, n_w2, n_w3, n_q1, n_q2, n_q3, n_status; k_ik_motion(R, La, Lb, iLa, RoLa, K, c1, s1, c2, s2, c3, s3, e1, e2, e3, lo1, lo2, lo3, hi1, hi2, hi3, tol, x, y, z, vx, vy, vz, ux, uy, uz, n_a1, n_a2, n_a3, n_w1, n_w2, n_w3, n_q1, n_q2, n_q3, n_status); a1 = n_a1; a2 = n_a2; a3 = n_a3; w1 = n_w1; w2 = n_w2; w3 = n_w3; q1 = n_q1; q2 = n_q2; q3 = n_q3; status = n_status; }
  r0 = x;
  r1 = y;
  r2 = z;
  r3 = vx;
  r4 = vy;
  r5 = vz;
  r6 = ux;
  r7 = uy;
  r8 = uz;
  r9 = a1;
  r10 = a2;
  r11 = a3;
  r12 = w1;
  r13 = w2;
  r14 = w3;
  r15 = q1;
  r16 = q2;
  r17 = q3;
  r18 = status;
}

KERNEL_FUNCTION T k_damped(T w, T a, T lo, T hi, T gain, bool valid) {
  T most = (gain * (hi - a));
  T least = (gain * (lo - a));
  w = ((w > most) ? most : w);
  w = ((w < least) ? least : w);
  return ((valid & ((w - w) == 0.0)) ? w : 0.0);
}

KERNEL_FUNCTION void k_control(T R, T La, T Lb, T Lb2, T c1, T s1, T c2, T s2, T c3, T s3, T down, T lo1, T lo2, T lo3, T hi1, T hi2, T hi3, T tol, T a1, T a2, T a3, T x, T y, T z, T vx, T vy, T vz, T gain, T wmax, T& r0, T& r1, T& r2, T& r3, T& r4) {
  T px, py, pz, status;
  { T n_px, n_py, n_pz, n_status; k_fk(R, La, Lb2, c1, s1, c2, s2, c3, s3, down, lo1, lo2, lo3, hi1, hi2, hi3, a1, a2, a3, n_px, n_py, n_pz, n_status); px = n_px; py = n_py; pz = n_pz; status = n_status; }
  T r1x, r1y, r1z, r2x, r2y, r2z, r3x, r3y, r3z, k1, k2, k3, _sa1, _ca1, _sa2, _ca2, _sa3, _ca3;
  { T n_r1x, n_r1y, n_r1z, n_r2x, n_r2y, n_r2z, n_r3x, n_r3y, n_r3z, n_k1, n_k2, n_k3, n__sa1, n__ca1, n__sa2, n__ca2, n__sa3, n__ca3; k_pose(R, La, c1, s1, c2, s2, c3, s3, a1, a2, a3, px, py, pz, n_r1x, n_r1y, n_r1z, n_r2x, n_r2y, n_r2z, n_r3x, n_r3y, n_r3z, n_k1, n_k2, n_k3, n__sa1, n__ca1, n__sa2, n__ca2, n__sa3, n__ca3); r1x = n_r1x; r1y = n_r1y; r1z = n_r1z; r2x = n_r2x; r2y = n_r2y; r2z = n_r2z; r3x = n_r3x; r3y = n_r3y; r3z = n_r3z; k1 = n_k1; k2 = n_k2; k3 = n_k3; _sa1 = n__sa1; _ca1 = n__ca1; _sa2 = n__sa2; _ca2 = n__ca2; _sa3 = n__sa3; _ca3 = n__ca3; }
  T ex = (x - px);
  T ey = (y - py);
  T ez = (z - pz);
  T gx = (vx + (gain * ex));
  T gy = (vy + (gain * ey));
  T gz = (vz + (gain * ez));
  T w1 = ((((r1x * gx) + (r1y * gy)) + (r1z * gz)) / k1);
  T w2 = ((((r2x * gx) + (r2y * gy)) + (r2z * gz)) / k2);
  T w3 = ((((r3x * gx) + (r3y * gy)) + (r3z * gz)) / k3);
  T b12 = ((fabs(w1) > fabs(w2)) ? fabs(w1) : fabs(w2));
  T big = ((fabs(w3) > b12) ? fabs(w3) : b12);
  T f = ((big > wmax) ? (wmax / ((big > wmax) ? big : 1.0)) : 1.0);
  bool target = ((((gx - gx) + (gy - gy)) + (gz - gz)) == 0.0);
  bool solved = (status < 4096.0);
  bool valid = (solved & target);
  w1 = k_damped((w1 * f), a1, lo1, hi1, gain, valid);
  w2 = k_damped((w2 * f), a2, lo2, hi2, gain, valid);
  w3 = k_damped((w3 * f), a3, lo3, hi3, gain, valid);
  T edge = (tol * (La * Lb));
  bool flat = (((fabs(k1) <= edge) | (fabs(k2) <= edge)) | (fabs(k3) <= edge));
  T bad = (target ? (flat ? 8192.0 : 0.0) : 4096.0);
  T error = sqrt((((ex * ex) + (ey * ey)) + (ez * ez)));
  r0 = w1;
  r1 = w2;
  r2 = w3;
  r3 = error;
  r4 = (status + (solved ? bad : 0.0));
}

KERNEL delta_fk(I outer,
    I count,
    const T* geometry, I geometry_row, I geometry_step, I geometry_outer,
    const T* options, I options_row, I options_step, I options_outer,
    const T* angle, I angle_row, I angle_step, I angle_outer,
    T* out_position, I out_position_row, I out_position_step, I out_position_outer,
    U* mask, I mask_step, I mask_outer) {
  const I jump = (I)gridDim.x * blockDim.x;
  for (I turn = blockIdx.y; turn < outer; turn += gridDim.y)
  for (I i = (I)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += jump) {
    const I geometry_i = i * geometry_step + turn * geometry_outer;
    const I options_i = i * options_step + turn * options_outer;
    const I angle_i = i * angle_step + turn * angle_outer;
    const T R = geometry[0 * geometry_row + geometry_i];
    const T La = geometry[1 * geometry_row + geometry_i];
    const T Lb2 = geometry[6 * geometry_row + geometry_i];
    const T c1 = geometry[7 * geometry_row + geometry_i];
    const T s1 = geometry[8 * geometry_row + geometry_i];
    const T c2 = geometry[9 * geometry_row + geometry_i];
    const T s2 = geometry[10 * geometry_row + geometry_i];
    const T c3 = geometry[11 * geometry_row + geometry_i];
    const T s3 = geometry[12 * geometry_row + geometry_i];
    const T down = options[3 * options_row + options_i];
    const T lo1 = options[4 * options_row + options_i];
    const T lo2 = options[5 * options_row + options_i];
    const T lo3 = options[6 * options_row + options_i];
    const T hi1 = options[7 * options_row + options_i];
    const T hi2 = options[8 * options_row + options_i];
    const T hi3 = options[9 * options_row + options_i];
    const T a1 = angle[0 * angle_row + angle_i];
    const T a2 = angle[1 * angle_row + angle_i];
    const T a3 = angle[2 * angle_row + angle_i];
    T o_position_0, o_position_1, o_position_2, o_state;
    k_fk(R, La, Lb2, c1, s1, c2, s2, c3, s3, down, lo1, lo2, lo3, hi1, hi2, hi3, a1, a2, a3, o_position_0, o_position_1, o_position_2, o_state);
    if (out_position) {
      const I at = i * out_position_step + turn * out_position_outer;
      out_position[0 * out_position_row + at] = o_position_0;
      out_position[1 * out_position_row + at] = o_position_1;
      out_position[2 * out_position_row + at] = o_position_2;
    }
    if (mask) mask[i * mask_step + turn * mask_outer] = (U)(int)o_state;
  }
}

KERNEL delta_ik(I outer,
    I count,
    const T* geometry, I geometry_row, I geometry_step, I geometry_outer,
    const T* options, I options_row, I options_step, I options_outer,
    const T* position, I position_row, I position_step, I position_outer,
    T* out_angle, I out_angle_row, I out_angle_step, I out_angle_outer,
    U* mask, I mask_step, I mask_outer) {
  const I jump = (I)gridDim.x * blockDim.x;
  for (I turn = blockIdx.y; turn < outer; turn += gridDim.y)
  for (I i = (I)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += jump) {
    const I geometry_i = i * geometry_step + turn * geometry_outer;
    const I options_i = i * options_step + turn * options_outer;
    const I position_i = i * position_step + turn * position_outer;
    const T R = geometry[0 * geometry_row + geometry_i];
    const T iLa = geometry[3 * geometry_row + geometry_i];
    const T RoLa = geometry[4 * geometry_row + geometry_i];
    const T K = geometry[5 * geometry_row + geometry_i];
    const T c1 = geometry[7 * geometry_row + geometry_i];
    const T s1 = geometry[8 * geometry_row + geometry_i];
    const T c2 = geometry[9 * geometry_row + geometry_i];
    const T s2 = geometry[10 * geometry_row + geometry_i];
    const T c3 = geometry[11 * geometry_row + geometry_i];
    const T s3 = geometry[12 * geometry_row + geometry_i];
    const T e1 = options[0 * options_row + options_i];
    const T e2 = options[1 * options_row + options_i];
    const T e3 = options[2 * options_row + options_i];
    const T lo1 = options[4 * options_row + options_i];
    const T lo2 = options[5 * options_row + options_i];
    const T lo3 = options[6 * options_row + options_i];
    const T hi1 = options[7 * options_row + options_i];
    const T hi2 = options[8 * options_row + options_i];
    const T hi3 = options[9 * options_row + options_i];
    const T x = position[0 * position_row + position_i];
    const T y = position[1 * position_row + position_i];
    const T z = position[2 * position_row + position_i];
    T o_angle_0, o_angle_1, o_angle_2, o_state;
    k_ik(R, iLa, RoLa, K, c1, s1, c2, s2, c3, s3, e1, e2, e3, lo1, lo2, lo3, hi1, hi2, hi3, x, y, z, o_angle_0, o_angle_1, o_angle_2, o_state);
    if (out_angle) {
      const I at = i * out_angle_step + turn * out_angle_outer;
      out_angle[0 * out_angle_row + at] = o_angle_0;
      out_angle[1 * out_angle_row + at] = o_angle_1;
      out_angle[2 * out_angle_row + at] = o_angle_2;
    }
    if (mask) mask[i * mask_step + turn * mask_outer] = (U)(int)o_state;
  }
}

KERNEL delta_jacobian(I outer,
    I count,
    const T* geometry, I geometry_row, I geometry_step, I geometry_outer,
    const T* options, I options_row, I options_step, I options_outer,
    const T* angle, I angle_row, I angle_step, I angle_outer,
    T* out_position, I out_position_row, I out_position_step, I out_position_outer,
    T* out_jacobian, I out_jacobian_row, I out_jacobian_step, I out_jacobian_outer,
    U* mask, I mask_step, I mask_outer) {
  const I jump = (I)gridDim.x * blockDim.x;
  for (I turn = blockIdx.y; turn < outer; turn += gridDim.y)
  for (I i = (I)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += jump) {
    const I geometry_i = i * geometry_step + turn * geometry_outer;
    const I options_i = i * options_step + turn * options_outer;
    const I angle_i = i * angle_step + turn * angle_outer;
    const T R = geometry[0 * geometry_row + geometry_i];
    const T La = geometry[1 * geometry_row + geometry_i];
    const T Lb = geometry[2 * geometry_row + geometry_i];
    const T Lb2 = geometry[6 * geometry_row + geometry_i];
    const T c1 = geometry[7 * geometry_row + geometry_i];
    const T s1 = geometry[8 * geometry_row + geometry_i];
    const T c2 = geometry[9 * geometry_row + geometry_i];
    const T s2 = geometry[10 * geometry_row + geometry_i];
    const T c3 = geometry[11 * geometry_row + geometry_i];
    const T s3 = geometry[12 * geometry_row + geometry_i];
    const T down = options[3 * options_row + options_i];
    const T lo1 = options[4 * options_row + options_i];
    const T lo2 = options[5 * options_row + options_i];
    const T lo3 = options[6 * options_row + options_i];
    const T hi1 = options[7 * options_row + options_i];
    const T hi2 = options[8 * options_row + options_i];
    const T hi3 = options[9 * options_row + options_i];
    const T tol = options[10 * options_row + options_i];
    const T a1 = angle[0 * angle_row + angle_i];
    const T a2 = angle[1 * angle_row + angle_i];
    const T a3 = angle[2 * angle_row + angle_i];
    T o_position_0, o_position_1, o_position_2, o_jacobian_0, o_jacobian_1, o_jacobian_2, o_jacobian_3, o_jacobian_4, o_jacobian_5, o_jacobian_6, o_jacobian_7, o_jacobian_8, o_state;
    k_jacobian(R, La, Lb, Lb2, c1, s1, c2, s2, c3, s3, down, lo1, lo2, lo3, hi1, hi2, hi3, tol, a1, a2, a3, o_position_0, o_position_1, o_position_2, o_jacobian_0, o_jacobian_1, o_jacobian_2, o_jacobian_3, o_jacobian_4, o_jacobian_5, o_jacobian_6, o_jacobian_7, o_jacobian_8, o_state);
    if (out_position) {
      const I at = i * out_position_step + turn * out_position_outer;
      out_position[0 * out_position_row + at] = o_position_0;
      out_position[1 * out_position_row + at] = o_position_1;
      out_position[2 * out_position_row + at] = o_position_2;
    }
    if (out_jacobian) {
      const I at = i * out_jacobian_step + turn * out_jacobian_outer;
      out_jacobian[0 * out_jacobian_row + at] = o_jacobian_0;
      out_jacobian[1 * out_jacobian_row + at] = o_jacobian_1;
      out_jacobian[2 * out_jacobian_row + at] = o_jacobian_2;
      out_jacobian[3 * out_jacobian_row + at] = o_jacobian_3;
      out_jacobian[4 * out_jacobian_row + at] = o_jacobian_4;
      out_jacobian[5 * out_jacobian_row + at] = o_jacobian_5;
      out_jacobian[6 * out_jacobian_row + at] = o_jacobian_6;
      out_jacobian[7 * out_jacobian_row + at] = o_jacobian_7;
      out_jacobian[8 * out_jacobian_row + at] = o_jacobian_8;
    }
    if (mask) mask[i * mask_step + turn * mask_outer] = (U)(int)o_state;
  }
}

KERNEL delta_measures(I outer,
    I count,
    const T* geometry, I geometry_row, I geometry_step, I geometry_outer,
    const T* options, I options_row, I options_step, I options_outer,
    const T* angle, I angle_row, I angle_step, I angle_outer,
    T* out_measure, I out_measure_row, I out_measure_step, I out_measure_outer,
    U* mask, I mask_step, I mask_outer) {
  const I jump = (I)gridDim.x * blockDim.x;
  for (I turn = blockIdx.y; turn < outer; turn += gridDim.y)
  for (I i = (I)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += jump) {
    const I geometry_i = i * geometry_step + turn * geometry_outer;
    const I options_i = i * options_step + turn * options_outer;
    const I angle_i = i * angle_step + turn * angle_outer;
    const T R = geometry[0 * geometry_row + geometry_i];
    const T La = geometry[1 * geometry_row + geometry_i];
    const T Lb = geometry[2 * geometry_row + geometry_i];
    const T Lb2 = geometry[6 * geometry_row + geometry_i];
    const T iLa = geometry[3 * geometry_row + geometry_i];
    const T c1 = geometry[7 * geometry_row + geometry_i];
    const T s1 = geometry[8 * geometry_row + geometry_i];
    const T c2 = geometry[9 * geometry_row + geometry_i];
    const T s2 = geometry[10 * geometry_row + geometry_i];
    const T c3 = geometry[11 * geometry_row + geometry_i];
    const T s3 = geometry[12 * geometry_row + geometry_i];
    const T down = options[3 * options_row + options_i];
    const T lo1 = options[4 * options_row + options_i];
    const T lo2 = options[5 * options_row + options_i];
    const T lo3 = options[6 * options_row + options_i];
    const T hi1 = options[7 * options_row + options_i];
    const T hi2 = options[8 * options_row + options_i];
    const T hi3 = options[9 * options_row + options_i];
    const T tol = options[10 * options_row + options_i];
    const T a1 = angle[0 * angle_row + angle_i];
    const T a2 = angle[1 * angle_row + angle_i];
    const T a3 = angle[2 * angle_row + angle_i];
    T o_measure_0, o_measure_1, o_measure_2, o_measure_3, o_measure_4, o_measure_5, o_measure_6, o_measure_7, o_state;
    k_measures(R, La, Lb, Lb2, iLa, c1, s1, c2, s2, c3, s3, down, lo1, lo2, lo3, hi1, hi2, hi3, tol, a1, a2, a3, o_measure_0, o_measure_1, o_measure_2, o_measure_3, o_measure_4, o_measure_5, o_measure_6, o_measure_7, o_state);
    if (out_measure) {
      const I at = i * out_measure_step + turn * out_measure_outer;
      out_measure[0 * out_measure_row + at] = o_measure_0;
      out_measure[1 * out_measure_row + at] = o_measure_1;
      out_measure[2 * out_measure_row + at] = o_measure_2;
      out_measure[3 * out_measure_row + at] = o_measure_3;
      out_measure[4 * out_measure_row + at] = o_measure_4;
      out_measure[5 * out_measure_row + at] = o_measure_5;
      out_measure[6 * out_measure_row + at] = o_measure_6;
      out_measure[7 * out_measure_row + at] = o_measure_7;
    }
    if (mask) mask[i * mask_step + turn * mask_outer] = (U)(int)o_state;
  }
}

KERNEL delta_fk_motion(I outer,
    I count,
    const T* geometry, I geometry_row, I geometry_step, I geometry_outer,
    const T* options, I options_row, I options_step, I options_outer,
    const T* angle, I angle_row, I angle_step, I angle_outer,
    const T* rate, I rate_row, I rate_step, I rate_outer,
    const T* rate2, I rate2_row, I rate2_step, I rate2_outer,
    T* out_position, I out_position_row, I out_position_step, I out_position_outer,
    T* out_velocity, I out_velocity_row, I out_velocity_step, I out_velocity_outer,
    T* out_acceleration, I out_acceleration_row, I out_acceleration_step, I out_acceleration_outer,
    U* mask, I mask_step, I mask_outer) {
  const I jump = (I)gridDim.x * blockDim.x;
  for (I turn = blockIdx.y; turn < outer; turn += gridDim.y)
  for (I i = (I)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += jump) {
    const I geometry_i = i * geometry_step + turn * geometry_outer;
    const I options_i = i * options_step + turn * options_outer;
    const I angle_i = i * angle_step + turn * angle_outer;
    const I rate_i = i * rate_step + turn * rate_outer;
    const I rate2_i = i * rate2_step + turn * rate2_outer;
    const T R = geometry[0 * geometry_row + geometry_i];
    const T La = geometry[1 * geometry_row + geometry_i];
    const T Lb = geometry[2 * geometry_row + geometry_i];
    const T Lb2 = geometry[6 * geometry_row + geometry_i];
    const T c1 = geometry[7 * geometry_row + geometry_i];
    const T s1 = geometry[8 * geometry_row + geometry_i];
    const T c2 = geometry[9 * geometry_row + geometry_i];
    const T s2 = geometry[10 * geometry_row + geometry_i];
    const T c3 = geometry[11 * geometry_row + geometry_i];
    const T s3 = geometry[12 * geometry_row + geometry_i];
    const T down = options[3 * options_row + options_i];
    const T lo1 = options[4 * options_row + options_i];
    const T lo2 = options[5 * options_row + options_i];
    const T lo3 = options[6 * options_row + options_i];
    const T hi1 = options[7 * options_row + options_i];
    const T hi2 = options[8 * options_row + options_i];
    const T hi3 = options[9 * options_row + options_i];
    const T tol = options[10 * options_row + options_i];
    const T a1 = angle[0 * angle_row + angle_i];
    const T a2 = angle[1 * angle_row + angle_i];
    const T a3 = angle[2 * angle_row + angle_i];
    const T w1 = rate[0 * rate_row + rate_i];
    const T w2 = rate[1 * rate_row + rate_i];
    const T w3 = rate[2 * rate_row + rate_i];
    const T q1 = rate2[0 * rate2_row + rate2_i];
    const T q2 = rate2[1 * rate2_row + rate2_i];
    const T q3 = rate2[2 * rate2_row + rate2_i];
    T o_position_0, o_position_1, o_position_2, o_velocity_0, o_velocity_1, o_velocity_2, o_acceleration_0, o_acceleration_1, o_acceleration_2, o_state;
    k_fk_motion(R, La, Lb, Lb2, c1, s1, c2, s2, c3, s3, down, lo1, lo2, lo3, hi1, hi2, hi3, tol, a1, a2, a3, w1, w2, w3, q1, q2, q3, o_position_0, o_position_1, o_position_2, o_velocity_0, o_velocity_1, o_velocity_2, o_acceleration_0, o_acceleration_1, o_acceleration_2, o_state);
    if (out_position) {
      const I at = i * out_position_step + turn * out_position_outer;
      out_position[0 * out_position_row + at] = o_position_0;
      out_position[1 * out_position_row + at] = o_position_1;
      out_position[2 * out_position_row + at] = o_position_2;
    }
    if (out_velocity) {
      const I at = i * out_velocity_step + turn * out_velocity_outer;
      out_velocity[0 * out_velocity_row + at] = o_velocity_0;
      out_velocity[1 * out_velocity_row + at] = o_velocity_1;
      out_velocity[2 * out_velocity_row + at] = o_velocity_2;
    }
    if (out_acceleration) {
      const I at = i * out_acceleration_step + turn * out_acceleration_outer;
      out_acceleration[0 * out_acceleration_row + at] = o_acceleration_0;
      out_acceleration[1 * out_acceleration_row + at] = o_acceleration_1;
      out_acceleration[2 * out_acceleration_row + at] = o_acceleration_2;
    }
    if (mask) mask[i * mask_step + turn * mask_outer] = (U)(int)o_state;
  }
}

KERNEL delta_ik_motion(I outer,
    I count,
    const T* geometry, I geometry_row, I geometry_step, I geometry_outer,
    const T* options, I options_row, I options_step, I options_outer,
    const T* position, I position_row, I position_step, I position_outer,
    const T* velocity, I velocity_row, I velocity_step, I velocity_outer,
    const T* acceleration, I acceleration_row, I acceleration_step, I acceleration_outer,
    T* out_angle, I out_angle_row, I out_angle_step, I out_angle_outer,
    T* out_rate, I out_rate_row, I out_rate_step, I out_rate_outer,
    T* out_rate2, I out_rate2_row, I out_rate2_step, I out_rate2_outer,
    U* mask, I mask_step, I mask_outer) {
  const I jump = (I)gridDim.x * blockDim.x;
  for (I turn = blockIdx.y; turn < outer; turn += gridDim.y)
  for (I i = (I)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += jump) {
    const I geometry_i = i * geometry_step + turn * geometry_outer;
    const I options_i = i * options_step + turn * options_outer;
    const I position_i = i * position_step + turn * position_outer;
    const I velocity_i = i * velocity_step + turn * velocity_outer;
    const I acceleration_i = i * acceleration_step + turn * acceleration_outer;
    const T R = geometry[0 * geometry_row + geometry_i];
    const T La = geometry[1 * geometry_row + geometry_i];
    const T Lb = geometry[2 * geometry_row + geometry_i];
    const T iLa = geometry[3 * geometry_row + geometry_i];
    const T RoLa = geometry[4 * geometry_row + geometry_i];
    const T K = geometry[5 * geometry_row + geometry_i];
    const T c1 = geometry[7 * geometry_row + geometry_i];
    const T s1 = geometry[8 * geometry_row + geometry_i];
    const T c2 = geometry[9 * geometry_row + geometry_i];
    const T s2 = geometry[10 * geometry_row + geometry_i];
    const T c3 = geometry[11 * geometry_row + geometry_i];
    const T s3 = geometry[12 * geometry_row + geometry_i];
    const T e1 = options[0 * options_row + options_i];
    const T e2 = options[1 * options_row + options_i];
    const T e3 = options[2 * options_row + options_i];
    const T lo1 = options[4 * options_row + options_i];
    const T lo2 = options[5 * options_row + options_i];
    const T lo3 = options[6 * options_row + options_i];
    const T hi1 = options[7 * options_row + options_i];
    const T hi2 = options[8 * options_row + options_i];
    const T hi3 = options[9 * options_row + options_i];
    const T tol = options[10 * options_row + options_i];
    const T x = position[0 * position_row + position_i];
    const T y = position[1 * position_row + position_i];
    const T z = position[2 * position_row + position_i];
    const T vx = velocity[0 * velocity_row + velocity_i];
    const T vy = velocity[1 * velocity_row + velocity_i];
    const T vz = velocity[2 * velocity_row + velocity_i];
    const T ux = acceleration[0 * acceleration_row + acceleration_i];
    const T uy = acceleration[1 * acceleration_row + acceleration_i];
    const T uz = acceleration[2 * acceleration_row + acceleration_i];
    T o_angle_0, o_angle_1, o_angle_2, o_rate_0, o_rate_1, o_rate_2, o_rate2_0, o_rate2_1, o_rate2_2, o_state;
    k_ik_motion(R, La, Lb, iLa, RoLa, K, c1, s1, c2, s2, c3, s3, e1, e2, e3, lo1, lo2, lo3, hi1, hi2, hi3, tol, x, y, z, vx, vy, vz, ux, uy, uz, o_angle_0, o_angle_1, o_angle_2, o_rate_0, o_rate_1, o_rate_2, o_rate2_0, o_rate2_1, o_rate2_2, o_state);
    if (out_angle) {
      const I at = i * out_angle_step + turn * out_angle_outer;
      out_angle[0 * out_angle_row + at] = o_angle_0;
      out_angle[1 * out_angle_row + at] = o_angle_1;
      out_angle[2 * out_angle_row + at] = o_angle_2;
    }
    if (out_rate) {
      const I at = i * out_rate_step + turn * out_rate_outer;
      out_rate[0 * out_rate_row + at] = o_rate_0;
      out_rate[1 * out_rate_row + at] = o_rate_1;
      out_rate[2 * out_rate_row + at] = o_rate_2;
    }
    if (out_rate2) {
      const I at = i * out_rate2_step + turn * out_rate2_outer;
      out_rate2[0 * out_rate2_row + at] = o_rate2_0;
      out_rate2[1 * out_rate2_row + at] = o_rate2_1;
      out_rate2[2 * out_rate2_row + at] = o_rate2_2;
    }
    if (mask) mask[i * mask_step + turn * mask_outer] = (U)(int)o_state;
  }
}

KERNEL delta_dexterity(I outer,
    I count,
    const T* geometry, I geometry_row, I geometry_step, I geometry_outer,
    const T* options, I options_row, I options_step, I options_outer,
    const T* position, I position_row, I position_step, I position_outer,
    T* out_measure, I out_measure_row, I out_measure_step, I out_measure_outer,
    U* mask, I mask_step, I mask_outer) {
  const I jump = (I)gridDim.x * blockDim.x;
  for (I turn = blockIdx.y; turn < outer; turn += gridDim.y)
  for (I i = (I)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += jump) {
    const I geometry_i = i * geometry_step + turn * geometry_outer;
    const I options_i = i * options_step + turn * options_outer;
    const I position_i = i * position_step + turn * position_outer;
    const T R = geometry[0 * geometry_row + geometry_i];
    const T La = geometry[1 * geometry_row + geometry_i];
    const T Lb = geometry[2 * geometry_row + geometry_i];
    const T Lb2 = geometry[6 * geometry_row + geometry_i];
    const T iLa = geometry[3 * geometry_row + geometry_i];
    const T RoLa = geometry[4 * geometry_row + geometry_i];
    const T K = geometry[5 * geometry_row + geometry_i];
    const T c1 = geometry[7 * geometry_row + geometry_i];
    const T s1 = geometry[8 * geometry_row + geometry_i];
    const T c2 = geometry[9 * geometry_row + geometry_i];
    const T s2 = geometry[10 * geometry_row + geometry_i];
    const T c3 = geometry[11 * geometry_row + geometry_i];
    const T s3 = geometry[12 * geometry_row + geometry_i];
    const T e1 = options[0 * options_row + options_i];
    const T e2 = options[1 * options_row + options_i];
    const T e3 = options[2 * options_row + options_i];
    const T lo1 = options[4 * options_row + options_i];
    const T lo2 = options[5 * options_row + options_i];
    const T lo3 = options[6 * options_row + options_i];
    const T hi1 = options[7 * options_row + options_i];
    const T hi2 = options[8 * options_row + options_i];
    const T hi3 = options[9 * options_row + options_i];
    const T tol = options[10 * options_row + options_i];
    const T x = position[0 * position_row + position_i];
    const T y = position[1 * position_row + position_i];
    const T z = position[2 * position_row + position_i];
    T o_measure_0, o_measure_1, o_measure_2, o_measure_3, o_measure_4, o_measure_5, o_measure_6, o_measure_7, o_state;
    k_dexterity(R, La, Lb, Lb2, iLa, RoLa, K, c1, s1, c2, s2, c3, s3, e1, e2, e3, lo1, lo2, lo3, hi1, hi2, hi3, tol, x, y, z, o_measure_0, o_measure_1, o_measure_2, o_measure_3, o_measure_4, o_measure_5, o_measure_6, o_measure_7, o_state);
    if (out_measure) {
      const I at = i * out_measure_step + turn * out_measure_outer;
      out_measure[0 * out_measure_row + at] = o_measure_0;
      out_measure[1 * out_measure_row + at] = o_measure_1;
      out_measure[2 * out_measure_row + at] = o_measure_2;
      out_measure[3 * out_measure_row + at] = o_measure_3;
      out_measure[4 * out_measure_row + at] = o_measure_4;
      out_measure[5 * out_measure_row + at] = o_measure_5;
      out_measure[6 * out_measure_row + at] = o_measure_6;
      out_measure[7 * out_measure_row + at] = o_measure_7;
    }
    if (mask) mask[i * mask_step + turn * mask_outer] = (U)(int)o_state;
  }
}

KERNEL delta_plan(I outer,
    I count,
    const T* geometry, I geometry_row, I geometry_step, I geometry_outer,
    const T* options, I options_row, I options_step, I options_outer,
    const T* start, I start_row, I start_step, I start_outer,
    const T* goal, I goal_row, I goal_step, I goal_outer,
    const T* move, I move_row, I move_step, I move_outer,
    T* out_path, I out_path_row, I out_path_step, I out_path_outer,
    T* out_duration, I out_duration_row, I out_duration_step, I out_duration_outer) {
  const I jump = (I)gridDim.x * blockDim.x;
  for (I turn = blockIdx.y; turn < outer; turn += gridDim.y)
  for (I i = (I)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += jump) {
    const I start_i = i * start_step + turn * start_outer;
    const I goal_i = i * goal_step + turn * goal_outer;
    const I move_i = i * move_step + turn * move_outer;
    const T x0 = start[0 * start_row + start_i];
    const T y0 = start[1 * start_row + start_i];
    const T z0 = start[2 * start_row + start_i];
    const T x1 = goal[0 * goal_row + goal_i];
    const T y1 = goal[1 * goal_row + goal_i];
    const T z1 = goal[2 * goal_row + goal_i];
    const T kind = move[0 * move_row + move_i];
    const T height = move[1 * move_row + move_i];
    const T overlap = move[2 * move_row + move_i];
    const T pause = move[3 * move_row + move_i];
    const T vmax = move[4 * move_row + move_i];
    const T amax = move[5 * move_row + move_i];
    const T jmax = move[6 * move_row + move_i];
    const T scale = move[7 * move_row + move_i];
    T o_path_0, o_path_1, o_path_2, o_path_3, o_path_4, o_path_5, o_path_6, o_path_7, o_path_8, o_path_9, o_path_10, o_path_11, o_path_12, o_path_13, o_path_14, o_path_15, o_path_16, o_path_17, o_path_18, o_path_19, o_path_20, o_path_21, o_path_22, o_path_23, o_path_24, o_path_25, o_duration_0;
    k_plan(x0, y0, z0, x1, y1, z1, kind, height, overlap, pause, vmax, amax, jmax, scale, o_path_0, o_path_1, o_path_2, o_path_3, o_path_4, o_path_5, o_path_6, o_path_7, o_path_8, o_path_9, o_path_10, o_path_11, o_path_12, o_path_13, o_path_14, o_path_15, o_path_16, o_path_17, o_path_18, o_path_19, o_path_20, o_path_21, o_path_22, o_path_23, o_path_24, o_path_25, o_duration_0);
    if (out_path) {
      const I at = i * out_path_step + turn * out_path_outer;
      out_path[0 * out_path_row + at] = o_path_0;
      out_path[1 * out_path_row + at] = o_path_1;
      out_path[2 * out_path_row + at] = o_path_2;
      out_path[3 * out_path_row + at] = o_path_3;
      out_path[4 * out_path_row + at] = o_path_4;
      out_path[5 * out_path_row + at] = o_path_5;
      out_path[6 * out_path_row + at] = o_path_6;
      out_path[7 * out_path_row + at] = o_path_7;
      out_path[8 * out_path_row + at] = o_path_8;
      out_path[9 * out_path_row + at] = o_path_9;
      out_path[10 * out_path_row + at] = o_path_10;
      out_path[11 * out_path_row + at] = o_path_11;
      out_path[12 * out_path_row + at] = o_path_12;
      out_path[13 * out_path_row + at] = o_path_13;
      out_path[14 * out_path_row + at] = o_path_14;
      out_path[15 * out_path_row + at] = o_path_15;
      out_path[16 * out_path_row + at] = o_path_16;
      out_path[17 * out_path_row + at] = o_path_17;
      out_path[18 * out_path_row + at] = o_path_18;
      out_path[19 * out_path_row + at] = o_path_19;
      out_path[20 * out_path_row + at] = o_path_20;
      out_path[21 * out_path_row + at] = o_path_21;
      out_path[22 * out_path_row + at] = o_path_22;
      out_path[23 * out_path_row + at] = o_path_23;
      out_path[24 * out_path_row + at] = o_path_24;
      out_path[25 * out_path_row + at] = o_path_25;
    }
    if (out_duration) {
      const I at = i * out_duration_step + turn * out_duration_outer;
      out_duration[0 * out_duration_row + at] = o_duration_0;
    }
  }
}

KERNEL delta_trajectory(I outer,
    I count,
    const T* geometry, I geometry_row, I geometry_step, I geometry_outer,
    const T* options, I options_row, I options_step, I options_outer,
    const T* time, I time_row, I time_step, I time_outer,
    const T* path, I path_row, I path_step, I path_outer,
    T* out_position, I out_position_row, I out_position_step, I out_position_outer,
    T* out_velocity, I out_velocity_row, I out_velocity_step, I out_velocity_outer,
    T* out_acceleration, I out_acceleration_row, I out_acceleration_step, I out_acceleration_outer,
    T* out_angle, I out_angle_row, I out_angle_step, I out_angle_outer,
    T* out_rate, I out_rate_row, I out_rate_step, I out_rate_outer,
    T* out_rate2, I out_rate2_row, I out_rate2_step, I out_rate2_outer,
    U* mask, I mask_step, I mask_outer) {
  const I jump = (I)gridDim.x * blockDim.x;
  for (I turn = blockIdx.y; turn < outer; turn += gridDim.y)
  for (I i = (I)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += jump) {
    const I geometry_i = i * geometry_step + turn * geometry_outer;
    const I options_i = i * options_step + turn * options_outer;
    const I time_i = i * time_step + turn * time_outer;
    const I path_i = i * path_step + turn * path_outer;
    const T R = geometry[0 * geometry_row + geometry_i];
    const T La = geometry[1 * geometry_row + geometry_i];
    const T Lb = geometry[2 * geometry_row + geometry_i];
    const T iLa = geometry[3 * geometry_row + geometry_i];
    const T RoLa = geometry[4 * geometry_row + geometry_i];
    const T K = geometry[5 * geometry_row + geometry_i];
    const T c1 = geometry[7 * geometry_row + geometry_i];
    const T s1 = geometry[8 * geometry_row + geometry_i];
    const T c2 = geometry[9 * geometry_row + geometry_i];
    const T s2 = geometry[10 * geometry_row + geometry_i];
    const T c3 = geometry[11 * geometry_row + geometry_i];
    const T s3 = geometry[12 * geometry_row + geometry_i];
    const T e1 = options[0 * options_row + options_i];
    const T e2 = options[1 * options_row + options_i];
    const T e3 = options[2 * options_row + options_i];
    const T lo1 = options[4 * options_row + options_i];
    const T lo2 = options[5 * options_row + options_i];
    const T lo3 = options[6 * options_row + options_i];
    const T hi1 = options[7 * options_row + options_i];
    const T hi2 = options[8 * options_row + options_i];
    const T hi3 = options[9 * options_row + options_i];
    const T tol = options[10 * options_row + options_i];
    const T t = time[0 * time_row + time_i];
    const T x0 = path[0 * path_row + path_i];
    const T y0 = path[1 * path_row + path_i];
    const T z0 = path[2 * path_row + path_i];
    const T dx = path[3 * path_row + path_i];
    const T dy = path[4 * path_row + path_i];
    const T dz = path[5 * path_row + path_i];
    const T h1 = path[6 * path_row + path_i];
    const T h3 = path[7 * path_row + path_i];
    const T Tj1 = path[8 * path_row + path_i];
    const T Ta1 = path[9 * path_row + path_i];
    const T Tv1 = path[10 * path_row + path_i];
    const T j1 = path[11 * path_row + path_i];
    const T t2 = path[12 * path_row + path_i];
    const T Tj2 = path[13 * path_row + path_i];
    const T Ta2 = path[14 * path_row + path_i];
    const T Tv2 = path[15 * path_row + path_i];
    const T j2 = path[16 * path_row + path_i];
    const T t3 = path[17 * path_row + path_i];
    const T Tj3 = path[18 * path_row + path_i];
    const T Ta3 = path[19 * path_row + path_i];
    const T Tv3 = path[20 * path_row + path_i];
    const T j3 = path[21 * path_row + path_i];
    const T Tp = path[22 * path_row + path_i];
    const T dwell = path[23 * path_row + path_i];
    const T cyclic = path[24 * path_row + path_i];
    const T lam = path[25 * path_row + path_i];
    T o_position_0, o_position_1, o_position_2, o_velocity_0, o_velocity_1, o_velocity_2, o_acceleration_0, o_acceleration_1, o_acceleration_2, o_angle_0, o_angle_1, o_angle_2, o_rate_0, o_rate_1, o_rate_2, o_rate2_0, o_rate2_1, o_rate2_2, o_state;
    k_trajectory(R, La, Lb, iLa, RoLa, K, c1, s1, c2, s2, c3, s3, e1, e2, e3, lo1, lo2, lo3, hi1, hi2, hi3, tol, t, x0, y0, z0, dx, dy, dz, h1, h3, Tj1, Ta1, Tv1, j1, t2, Tj2, Ta2, Tv2, j2, t3, Tj3, Ta3, Tv3, j3, Tp, dwell, cyclic, lam, o_position_0, o_position_1, o_position_2, o_velocity_0, o_velocity_1, o_velocity_2, o_acceleration_0, o_acceleration_1, o_acceleration_2, o_angle_0, o_angle_1, o_angle_2, o_rate_0, o_rate_1, o_rate_2, o_rate2_0, o_rate2_1, o_rate2_2, o_state);
    if (out_position) {
      const I at = i * out_position_step + turn * out_position_outer;
      out_position[0 * out_position_row + at] = o_position_0;
      out_position[1 * out_position_row + at] = o_position_1;
      out_position[2 * out_position_row + at] = o_position_2;
    }
    if (out_velocity) {
      const I at = i * out_velocity_step + turn * out_velocity_outer;
      out_velocity[0 * out_velocity_row + at] = o_velocity_0;
      out_velocity[1 * out_velocity_row + at] = o_velocity_1;
      out_velocity[2 * out_velocity_row + at] = o_velocity_2;
    }
    if (out_acceleration) {
      const I at = i * out_acceleration_step + turn * out_acceleration_outer;
      out_acceleration[0 * out_acceleration_row + at] = o_acceleration_0;
      out_acceleration[1 * out_acceleration_row + at] = o_acceleration_1;
      out_acceleration[2 * out_acceleration_row + at] = o_acceleration_2;
    }
    if (out_angle) {
      const I at = i * out_angle_step + turn * out_angle_outer;
      out_angle[0 * out_angle_row + at] = o_angle_0;
      out_angle[1 * out_angle_row + at] = o_angle_1;
      out_angle[2 * out_angle_row + at] = o_angle_2;
    }
    if (out_rate) {
      const I at = i * out_rate_step + turn * out_rate_outer;
      out_rate[0 * out_rate_row + at] = o_rate_0;
      out_rate[1 * out_rate_row + at] = o_rate_1;
      out_rate[2 * out_rate_row + at] = o_rate_2;
    }
    if (out_rate2) {
      const I at = i * out_rate2_step + turn * out_rate2_outer;
      out_rate2[0 * out_rate2_row + at] = o_rate2_0;
      out_rate2[1 * out_rate2_row + at] = o_rate2_1;
      out_rate2[2 * out_rate2_row + at] = o_rate2_2;
    }
    if (mask) mask[i * mask_step + turn * mask_outer] = (U)(int)o_state;
  }
}

KERNEL delta_control(I outer,
    I count,
    const T* geometry, I geometry_row, I geometry_step, I geometry_outer,
    const T* options, I options_row, I options_step, I options_outer,
    const T* angle, I angle_row, I angle_step, I angle_outer,
    const T* target, I target_row, I target_step, I target_outer,
    const T* feedforward, I feedforward_row, I feedforward_step, I feedforward_outer,
    const T* law, I law_row, I law_step, I law_outer,
    T* out_rate, I out_rate_row, I out_rate_step, I out_rate_outer,
    T* out_error, I out_error_row, I out_error_step, I out_error_outer,
    U* mask, I mask_step, I mask_outer) {
  const I jump = (I)gridDim.x * blockDim.x;
  for (I turn = blockIdx.y; turn < outer; turn += gridDim.y)
  for (I i = (I)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += jump) {
    const I geometry_i = i * geometry_step + turn * geometry_outer;
    const I options_i = i * options_step + turn * options_outer;
    const I angle_i = i * angle_step + turn * angle_outer;
    const I target_i = i * target_step + turn * target_outer;
    const I feedforward_i = i * feedforward_step + turn * feedforward_outer;
    const I law_i = i * law_step + turn * law_outer;
    const T R = geometry[0 * geometry_row + geometry_i];
    const T La = geometry[1 * geometry_row + geometry_i];
    const T Lb = geometry[2 * geometry_row + geometry_i];
    const T Lb2 = geometry[6 * geometry_row + geometry_i];
    const T c1 = geometry[7 * geometry_row + geometry_i];
    const T s1 = geometry[8 * geometry_row + geometry_i];
    const T c2 = geometry[9 * geometry_row + geometry_i];
    const T s2 = geometry[10 * geometry_row + geometry_i];
    const T c3 = geometry[11 * geometry_row + geometry_i];
    const T s3 = geometry[12 * geometry_row + geometry_i];
    const T down = options[3 * options_row + options_i];
    const T lo1 = options[4 * options_row + options_i];
    const T lo2 = options[5 * options_row + options_i];
    const T lo3 = options[6 * options_row + options_i];
    const T hi1 = options[7 * options_row + options_i];
    const T hi2 = options[8 * options_row + options_i];
    const T hi3 = options[9 * options_row + options_i];
    const T tol = options[10 * options_row + options_i];
    const T a1 = angle[0 * angle_row + angle_i];
    const T a2 = angle[1 * angle_row + angle_i];
    const T a3 = angle[2 * angle_row + angle_i];
    const T x = target[0 * target_row + target_i];
    const T y = target[1 * target_row + target_i];
    const T z = target[2 * target_row + target_i];
    const T vx = feedforward[0 * feedforward_row + feedforward_i];
    const T vy = feedforward[1 * feedforward_row + feedforward_i];
    const T vz = feedforward[2 * feedforward_row + feedforward_i];
    const T gain = law[0 * law_row + law_i];
    const T wmax = law[1 * law_row + law_i];
    T o_rate_0, o_rate_1, o_rate_2, o_error_0, o_state;
    k_control(R, La, Lb, Lb2, c1, s1, c2, s2, c3, s3, down, lo1, lo2, lo3, hi1, hi2, hi3, tol, a1, a2, a3, x, y, z, vx, vy, vz, gain, wmax, o_rate_0, o_rate_1, o_rate_2, o_error_0, o_state);
    if (out_rate) {
      const I at = i * out_rate_step + turn * out_rate_outer;
      out_rate[0 * out_rate_row + at] = o_rate_0;
      out_rate[1 * out_rate_row + at] = o_rate_1;
      out_rate[2 * out_rate_row + at] = o_rate_2;
    }
    if (out_error) {
      const I at = i * out_error_step + turn * out_error_outer;
      out_error[0 * out_error_row + at] = o_error_0;
    }
    if (mask) mask[i * mask_step + turn * mask_outer] = (U)(int)o_state;
  }
}
