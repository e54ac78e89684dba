package apptest

// FormerKeys is an experiment that is tiny, and written in keys of an earlier program.
const FormerKeys = `seed: 1
env: {kind: corridor, cells: 6}
agent:
  kind: a2c
  rollout_steps: 5
  lr_actor: 0.001
  lr_critic: 0.002
  entropy_coef: 0.01
  hidden: [4]
train: {num_envs: 2, total_env_steps: 100, threads: 1, validation: {every_steps: 50}}
publish: {when: never}
`
