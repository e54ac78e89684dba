"""What sb3.py compares: trainings that "onnxrl bench train" does, and the arguments with which Stable-Baselines3 does the same; sb3_sbx.py makes SBX's of them."""


def linear(initial):
    return lambda progress_remaining: progress_remaining * initial


class Row:
    """One training. here and there are the env steps of onnxrl and of the others; they are equal where random steps before learning would be a different part of longer and shorter trainings. document is the name of what "onnxrl bench train" runs, that of the row unless said otherwise, and sets are edits of it."""

    def __init__(self, env, algorithm, target, here, there, kwargs=None, num_envs=1, document=None, sets=()):
        self.env, self.algorithm, self.target, self.here, self.there = env, algorithm, target, here, there
        self.kwargs, self.num_envs, self.document, self.sets = kwargs or {}, num_envs, document, list(sets)


ROWS = {
    "ppo_cartpole": Row("CartPole-v1", "PPO", 15, 200_000, 12_288),
    "a2c_cartpole": Row("CartPole-v1", "A2C", 15, 200_000, 10_000),
    "dqn_cartpole": Row("CartPole-v1", "DQN", 10, 200_000, 12_000),
    "sac_pendulum": Row("Pendulum-v1", "SAC", 2, 1_200, 1_200),
    "td3_pendulum": Row("Pendulum-v1", "TD3", 2, 1_200, 1_200, {"policy_kwargs": {"net_arch": [256, 256]}}),
    "ddpg_pendulum": Row("Pendulum-v1", "DDPG", 2, 1_200, 1_200, {"policy_kwargs": {"net_arch": [256, 256]}}, document="td3_pendulum", sets=["agent={kind: ddpg, hidden: [256, 256]}"]),
    "cartpole_ppo": Row("CartPole-v1", "PPO", 8, 102_400, 20_480,
                        {"n_steps": 32, "batch_size": 256, "gae_lambda": 0.8, "gamma": 0.98, "n_epochs": 20, "ent_coef": 0.0, "learning_rate": linear(1e-3), "clip_range": linear(0.2)}, num_envs=8),
    "cartpole_dqn": Row("CartPole-v1", "DQN", 4, 10_000, 10_000,
                        {"learning_rate": 2.3e-3, "batch_size": 64, "buffer_size": 100_000, "learning_starts": 1000, "gamma": 0.99, "target_update_interval": 10, "train_freq": 256,
                         "gradient_steps": 128, "exploration_fraction": 0.16, "exploration_final_eps": 0.04, "policy_kwargs": {"net_arch": [256, 256]}}),
}
