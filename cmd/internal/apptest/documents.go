package apptest

// QTMRLDefault is the configuration of QTMRL's specification, as its owner gives it.
const QTMRLDefault = `seed: 42
assets: [AAPL, MSFT, NVDA, CVX, OXY, AAL, UAL, DAL, CCL, RCL, WYNN, LVS, AXP, BAC, JNJ, GOOGL]
window: 20
fee_rate: 0.0005
buy_pct: 0.20
sell_pct: 0.50
split:
  train: ["2000-01-03", "2010-12-31"]
  valid: ["2011-01-03", "2018-12-31"]
  test:  ["2019-01-02", "2021-12-31"]
features:
  ohlcv: true
  indicators:
    sma: [10, 20, 50]
    ema: [12, 26]
    rsi: [14]
    macd: [12, 26, 9]     # (fast, slow, signal)
    atr: [14]
    bbands: [20, 2.0]     # (period, std)
    ichimoku: [9, 26, 52]
    heikin_ashi: true
    supertrend: [10, 3.0] # (period, multiplier)
normalization:
  method: zscore
  fit_on: "train"
  include: ["OHLCV", "indicators"]
state:
  include_pos: true
  include_cash: true
model:
  encoder: "TimeCNN"     # or "Transformer"
  d_model: 128
  n_layers: 3
  dropout: 0.0
train:
  algo: "A2C"
  gamma: 0.96
  entropy_coef: 0.05
  value_coef: 1.0
  lr_actor: 1.0e-5
  lr_critic: 1.0e-5
  grad_clip: 1.0
  rollout_steps: 50
  total_env_steps: 1000000
  log_interval_steps: 1000
eval:
  deterministic: true
  use_fee: true
  metrics: ["total_return","sharpe","volatility","max_drawdown"]
logging:
  use_wandb: false
  output_dir: "./runs"
`

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
