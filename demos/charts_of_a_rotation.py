"""One orientation in nine charts: its numbers, the rates of one angular velocity, and how far a singularity is.

    python demos/charts_of_a_rotation.py

Every chart maps its rates to the same angular velocity, ``omega = E(theta) theta_rate``; near a singularity the rates
grow without bound though the body turns as calmly as before.
"""

import numpy as np

import mcplan as mc

charts = mc.coordinates
CHARTS = (
    charts.ROLL_PITCH_YAW,
    charts.ZYX,
    charts.XYZ,
    charts.ZYZ,
    charts.ZXZ,
    charts.ROTATION_VECTOR,
    charts.ANGLE_AXIS,
    charts.UNIT_QUATERNION,
    charts.ROTATION_MATRIX,
)


def main() -> None:
    omega = np.array([0.3, -0.2, 0.9])
    for pitch in (0.4, 1.55):
        R = charts.ROLL_PITCH_YAW.rotation([0.1, pitch, 0.7])
        print(f"pitch {np.degrees(pitch):.1f} degrees, turning at {np.linalg.norm(omega):.3f} rad/s")
        print("  chart                             numbers  constraints  fastest rate  to a singularity")
        worst = 0.0
        for chart in CHARTS:
            theta = chart.parameters(R)
            rate = chart.E_inverse(theta) @ omega
            worst = max(worst, np.abs(chart.E(theta) @ rate - omega).max())
            print(
                f"  {chart.name:32s} {chart.size:8d} {chart.size - 3:12d} {np.abs(rate).max():13.3f} "
                f"{chart.distance_to_singularity(theta):14.3f} rad"
            )
    print(f"the angular velocity of these rates is right to {worst:.0e} rad/s in all of them")


if __name__ == "__main__":
    main()
