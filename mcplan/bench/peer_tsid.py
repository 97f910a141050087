"""TSID benchmark of the reference tick; runs in the interpreter in which TSID is installed, without mcplan.

Reads one JSON job from standard input and prints one JSON result.
"""

import json
import sys
import time

import numpy as np
import pinocchio as pin  # before tsid, which needs the types that pinocchio registers
import tsid.tsid_pywrap as tsid


class Tick:
    """One tick of TSID for the job's robot and definition.

    TSID stores raw pointers to contacts and tasks, so all of them stay attributes here.
    """

    def __init__(self, job):
        d = self.definition = job["definition"]
        self.robot = tsid.RobotWrapper(job["urdf"], pin.StdVec_StdString(), pin.JointModelFreeFlyer(), False)
        self.model = self.robot.model()
        self.index = {name: self.model.idx_vs[self.model.getJointId(name)] for name in list(self.model.names)[2:]}
        self.q = pin.neutral(self.model)
        self.q[:7] = job["base_xyzw"]
        for name, value in job["joints"].items():
            self.q[self.model.idx_qs[self.model.getJointId(name)]] = value
        self.v = np.zeros(self.robot.nv)
        self.formulation = tsid.InverseDynamicsFormulationAccForce("tick", self.robot, False)
        self.formulation.computeProblemData(0.0, self.q, self.v)
        self.contacts = [self.contact(link, points, d) for link, points in job["feet"].items()]
        self.add_tasks(d)
        self.solver = tsid.SolverHQuadProgFast("qp")
        self.solver.resize(self.formulation.nVar, self.formulation.nEq, self.formulation.nIn)

    def contact(self, link, points, d):
        """Add the contact of a foot at its pose."""
        contact = tsid.Contact6d(
            "contact_" + link, self.robot, link, np.array(points).T, np.array([0.0, 0.0, 1.0]),
            d["friction"], d["min_force"], d["max_force"],
        )  # fmt: skip
        contact.setKp(d["contact_kp"] * np.ones(6))
        contact.setKd(d["contact_kd"] * np.ones(6))
        contact.setReference(self.robot.framePosition(self.formulation.data(), self.model.getFrameId(link)))
        self.formulation.addRigidContact(contact, d["force_weight"])
        return contact

    def add_tasks(self, d):
        """Add the tasks of centre of mass and posture, and the bounds of torques and velocities."""
        n = self.robot.nv - 6
        self.com = tsid.TaskComEquality("com", self.robot)
        self.com.setKp(d["kp"] * np.ones(3))
        self.com.setKd(d["kd"] * np.ones(3))
        self.formulation.addMotionTask(self.com, d["com_weight"], 1, 0.0)
        self.posture = tsid.TaskJointPosture("posture", self.robot)
        self.posture.setKp(d["kp"] * np.ones(n))
        self.posture.setKd(d["kd"] * np.ones(n))
        self.formulation.addMotionTask(self.posture, d["posture_weight"], 1, 0.0)
        self.posture.setReference(tsid.TrajectoryEuclidianConstant("posture", self.q[7:]).computeNext())
        torque, velocity = self.model.effortLimit[6:], self.model.velocityLimit[6:]
        self.torque_bounds = tsid.TaskActuationBounds("torque", self.robot)
        self.torque_bounds.setBounds(-torque, torque)
        self.formulation.addActuationTask(self.torque_bounds, 1.0, 0, 0.0)
        self.velocity_bounds = tsid.TaskJointBounds("velocity", self.robot, d["dt"])
        self.velocity_bounds.setVelocityBounds(-velocity, velocity)
        self.formulation.addMotionTask(self.velocity_bounds, 1.0, 0, 0.0)
        self.com_at_start = self.robot.com(self.formulation.data()).copy()
        self.sample = tsid.TrajectorySample(3)

    def set_reference(self, t):
        """Set the reference of the centre of mass."""
        w, amplitude = 2 * np.pi * self.definition["frequency"], np.array([0.0, self.definition["sway"], 0.0])
        self.sample.value(self.com_at_start + amplitude * np.sin(w * t))
        self.sample.derivative(amplitude * w * np.cos(w * t))
        self.sample.second_derivative(-amplitude * w * w * np.sin(w * t))
        self.com.setReference(self.sample)

    def run(self, ticks):
        """Run ticks and integrate the state; return their times (s), and the first tick's accelerations and torques."""
        dt, times, first = self.definition["dt"], [], None
        for i in range(ticks):
            self.set_reference(i * dt)
            begin = time.perf_counter()
            problem = self.formulation.computeProblemData(i * dt, self.q, self.v)
            solution = self.solver.solve(problem)
            vd = self.formulation.getAccelerations(solution)
            tau = self.formulation.getActuatorForces(solution)
            times.append(time.perf_counter() - begin)
            if solution.status != 0:
                raise SystemExit(f"tick {i}: status {solution.status}")
            if first is None:
                first = vd.copy(), tau.copy()
            self.v = self.v + dt * vd
            self.q = pin.integrate(self.model, self.q, dt * self.v)
        return times, first


def main():
    """Run one job."""
    job = json.load(sys.stdin)
    tick = Tick(job)
    times, (vd, tau) = tick.run(job["ticks"])
    us = np.array(times[job["skip"] :]) * 1e6
    result = {
        "peer": "tsid",
        "tick_us": float(np.median(us)),
        "tick_p99_us": float(np.percentile(us, 99)),
        "sizes": [tick.formulation.nVar, tick.formulation.nEq, tick.formulation.nIn],
        "first": {
            "base_local": vd[:6].tolist(),
            "joints": {name: float(vd[i]) for name, i in tick.index.items()},
            "tau": {name: float(tau[i - 6]) for name, i in tick.index.items()},
        },
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
