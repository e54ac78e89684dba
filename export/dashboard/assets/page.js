// The page listens for changes and fetches again what the view shows. Everything that comes from runs is set as text, never as markup.

import { $, ask, bars, brief, bytes, count, duration, el, fill, get as getJSON, heat, lines, nothing, percent, reading, Refused, short, table, theme, tree, unlocked } from './kit.js';

const state = { version: 0, structure: -1, runs: new Map(), items: [], now: 0, folder: '' };
let view = null; // { key, update }

// choices outlive a reload, not the tab.
const choices = JSON.parse(sessionStorage.getItem('onnxrl-choices') ?? '{}');
function choose(key, value) {
  choices[key] = value;
  sessionStorage.setItem('onnxrl-choices', JSON.stringify(choices));
}

// ---- asking

// address is that of data with the given parameters, of which one may be a list.
function address(path, params) {
  const query = new URLSearchParams();
  for (const [k, v] of Object.entries(params ?? {})) for (const x of Array.isArray(v) ? v : [v]) query.append(k, x);
  const text = query.toString();
  return 'data/' + path + (text ? '?' + text : '');
}

const get = (path, params) => getJSON(address(path, params));

async function save(params, name) {
  const r = await ask(address('file', params));
  const url = URL.createObjectURL(await r.blob());
  el('a', { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

// freshOf says whether an answer differs from the one before under a key of a view; what is the same is not drawn again.
// An update that is still waiting when its view is left must not answer for the next one.
const freshOf = (view) => (key, v) => {
  const text = JSON.stringify(v);
  if (view.drawn.get(key) === text) return false;
  view.drawn.set(key, text);
  return true;
};

function tell(error) {
  $('problem').textContent = error ? error.message : '';
  $('problem').hidden = !error;
}

// ---- small parts

// nice is an id without the folders that all have in common.
function nice(id) {
  return id.startsWith(state.folder) ? id.slice(state.folder.length) : id;
}

function commonFolder(ids) {
  if (ids.length === 0) return '';
  let p = ids[0].slice(0, ids[0].lastIndexOf('/') + 1);
  for (const id of ids) while (!id.startsWith(p)) p = p.slice(0, p.lastIndexOf('/', p.length - 2) + 1);
  return p;
}

const items = (kind) => state.items.filter((i) => i.kind === kind);
const time = (s) => (s ? new Date(s * 1000).toLocaleTimeString() : '–');
const day = (text) => (text ?? '').slice(0, 10);
const color = (i) => 'c' + (i % 9);

// picker is a choice among ids, which it remembers under a key; changed is called with the chosen.
function picker(label, key, options, changed) {
  const select = el('select', { id: 'pick-' + key, onchange: () => {
    choose(key, select.value);
    changed(select.value);
  } });
  const set = (list) => {
    const now = list.map((o) => o.id).join('\n');
    if (set.last === now) return select.value;
    set.last = now;
    const wanted = choices[key] ?? select.value;
    select.replaceChildren(...list.map((o) => el('option', { value: o.id }, o.text ?? nice(o.id))));
    if (list.some((o) => o.id === wanted)) select.value = wanted;
    return select.value;
  };
  set(options);
  return { node: el('label', {}, label, select), set, get value() { return select.value; } };
}

const tile = (name, value, cls, exact) => el('div', { class: 'tile' + (cls ? ' ' + cls : ''), 'data-tile': name }, el('span', {}, name), el('b', { 'data-value': exact ?? false }, value));

function filesOf(kind, id) {
  const box = el('div', {});
  const details = el('details', { ontoggle: async () => {
    if (!details.open || box.childElementCount > 0) return;
    try {
      const list = await get('files', { kind, id });
      box.append(table(list, [['file', (f) => el('button', { type: 'button', onclick: () => save({ kind, id, path: f.path }, f.path.split('/').pop()).catch(tell) }, f.path), 'l'], ['size', (f) => bytes(f.size)]], 'no files'));
    } catch (e) {
      tell(e);
    }
  } }, el('summary', {}, 'Files'), box);
  return details;
}

// ---- runs

// picked are the runs that are compared: those that were ticked, and else the newest of each configuration.
function picked() {
  const ticked = (choices.runs ?? []).filter((id) => state.runs.has(id));
  if (ticked.length > 0) return ticked;
  return [...state.runs.values()].sort((a, b) => b.updated - a.updated).slice(0, 12).map((r) => r.id);
}

const runColumns = [
  ['run', (r) => r.id, 'l'],
  ['state', (r) => r.state, 'l'],
  ['agent', (r) => r.agent, 'l hide'],
  ['environment', (r) => r.env, 'l hide'],
  ['seed', (r) => r.seed],
  ['env steps', (r) => r.steps],
  ['done', (r) => (r.total ? r.steps / r.total : null)],
  ['return', (r) => r.return],
  ['validation', (r) => r.score],
  ['best', (r) => r.best],
  ['env steps/s', (r) => r.fps],
  ['updated', (r) => r.updated],
];

function runCell(name, v, r) {
  switch (name) {
    case 'run': return [el('button', { type: 'button', class: 'name', title: r.id, onclick: () => { choose('run', r.id); go('run', true); } }, nice(r.id)), ...(r.problem || r.bad ? [el('span', { class: 'bad', title: r.problem || `${r.bad} lines were no metrics` }, ' ⚠')] : [])];
    case 'state': return [el('span', { class: 'tag ' + v }, v)];
    case 'done': return [v === null ? '–' : percent(Math.min(1, v))];
    case 'updated': return [v ? duration(state.now - v) + ' ago' : '–'];
    case 'validation': case 'best': return [el('span', { title: `${r.metric} ${v ?? ''}` }, short(v))];
    default: return [typeof v === 'number' ? short(v) : String(v ?? '–')];
  }
}

function runsView(main) {
  const filter = el('input', { id: 'filter', type: 'search', placeholder: 'name, agent, environment', value: choices.filter ?? '', oninput: () => {
    choose('filter', filter.value);
    update();
  } });
  const head = el('tr', {}, el('th', { scope: 'col' }, ''));
  const body = el('tbody', {});
  const rows = new Map();
  const said = el('span', { class: 'soft' });
  for (const [name, , cls] of runColumns) {
    head.append(el('th', { scope: 'col', class: cls ?? false, 'data-column': name }, el('button', { type: 'button', onclick: () => {
      choose('sort', choices.sort === name ? '-' + name : name);
      update();
    } }, name)));
  }
  main.append(
    el('div', { class: 'tools' }, el('label', {}, 'Find', filter), el('button', { type: 'button', id: 'compare', onclick: () => go('curves') }, 'Compare'), el('button', { type: 'button', onclick: () => {
      choose('runs', [...new Set([...(choices.runs ?? []), ...rows.keys()])]);
      update();
    } }, 'Tick these'), el('button', { type: 'button', onclick: () => {
      choose('runs', []);
      update();
    } }, 'Untick all'), said),
    el('div', { class: 'wide' }, el('table', { id: 'runs' }, el('thead', {}, head), body)),
  );
  const tick = (id, on) => {
    const list = new Set(choices.runs ?? []);
    if (on) list.add(id);
    else list.delete(id);
    choose('runs', [...list]);
    update();
  };
  function update() {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    let list = [...state.runs.values()].filter((r) => words.every((w) => `${r.id} ${r.name} ${r.agent} ${r.env} ${r.state}`.toLowerCase().includes(w)));
    const sort = choices.sort ?? '-updated';
    const by = runColumns.find(([n]) => n === sort.replace('-', ''));
    const sign = sort.startsWith('-') ? -1 : 1;
    if (by) list.sort((a, b) => {
      const [x, y] = [by[1](a), by[1](b)];
      if (x === null || x === undefined) return 1;
      if (y === null || y === undefined) return -1;
      return sign * (x < y ? -1 : x > y ? 1 : 0);
    });
    for (const th of head.querySelectorAll('th[data-column]')) {
      if (th.dataset.column === sort.replace('-', '')) th.setAttribute('aria-sort', sign > 0 ? 'ascending' : 'descending');
      else th.removeAttribute('aria-sort');
    }
    const all = list.length;
    list = list.slice(0, 500);
    const ticked = new Set(choices.runs ?? []);
    const points = [...state.runs.values()].reduce((n, r) => n + r.points, 0);
    said.textContent = `${all} of ${state.runs.size} runs, ${count(points)} points` + (all > list.length ? `, the first ${list.length} shown` : '') + (ticked.size ? `, ${ticked.size} ticked` : '');
    const keep = new Set(list.map((r) => r.id));
    for (const [id, row] of rows) if (!keep.has(id)) {
      row.node.remove();
      rows.delete(id);
    }
    let before = null;
    for (const r of list) {
      let row = rows.get(r.id);
      if (!row) {
        const box = el('input', { type: 'checkbox', 'aria-label': 'compare ' + r.id, onchange: () => tick(r.id, box.checked) });
        const cells = runColumns.map(([, , cls]) => el('td', { class: cls ?? false }));
        row = { box, cells, node: el('tr', { 'data-run': r.id }, el('td', {}, box), ...cells) };
        rows.set(r.id, row);
      }
      row.box.checked = ticked.has(r.id);
      if (row.of !== r || r.state === 'running') {
        runColumns.forEach(([name, f], i) => {
          row.cells[i].dataset.column = name;
          row.cells[i].dataset.value = f(r) ?? '';
          row.cells[i].replaceChildren(...runCell(name, f(r), r));
        });
        row.of = r;
      }
      const place = before ? before.nextSibling : body.firstChild;
      if (place !== row.node) body.insertBefore(row.node, place);
      before = row.node;
    }
    if (state.runs.size === 0) said.textContent = 'no runs yet: what is below the given folders is shown as soon as it is there';
  }
  return update;
}

// runView is one run: where it is, its checkpoints, what came of it, and its configuration.
function runView(main, fresh) {
  const pick = picker('Run', 'run', items('run'), () => update());
  const body = el('div', {});
  main.append(el('div', { class: 'tools' }, pick.node, el('button', { type: 'button', onclick: () => {
    choose('runs', [pick.value]);
    go('curves');
  } }, 'Curves of this run')), body);
  let drawn = 0;
  return update;
  async function update() {
    const turn = ++drawn;
    const id = pick.set(items('run'));
    const r = state.runs.get(id);
    if (!r) return body.replaceChildren(nothing('no runs yet'));
    const [checkpoints, settings] = await Promise.all([get('checkpoints', { id }), get('settings', { run: [id] }).catch(() => [])]);
    if (turn !== drawn || !fresh('run', [r, checkpoints, settings, state.structure])) return;
    const of = state.items.filter((i) => i.id.startsWith(id + '/') && (i.kind === 'report' || i.kind === 'store'));
    const to = { report: 'report', store: 'artefacts' };
    fill(body,
      el('div', { class: 'tiles' }, tile('state', r.state), tile('env steps', short(r.steps) + (r.total ? ` of ${short(r.total)}` : '')), tile('return', short(r.return)), tile(r.metric || 'validation', short(r.score)), tile('best', short(r.best)), tile('seed', String(r.seed ?? '–')), tile('env steps/s', short(r.fps)), tile('took', duration(r.updated - r.began))),
      ...(r.problem ? [el('p', { class: 'bad' }, r.problem)] : []),
      ...(r.bad || r.broken ? [el('p', { class: 'soft' }, `${count(r.bad)} lines were no metrics, ${count(r.broken)} values no numbers`)] : []),
      el('div', { class: 'two' },
        el('div', {}, el('h2', {}, 'Checkpoints'), table(checkpoints, [['checkpoint', (c) => c.name, 'l'], ['env step', (c) => count(c.step)], ['score', (c) => [short(c.score), c.best ? ' best' : ''].join('')], ['size', (c) => bytes(c.bytes)], ['', (c) => c.problem ?? '', 'l wrap']], 'none was kept')),
        el('div', {}, el('h2', {}, 'What came of it'), of.length ? el('ul', { class: 'lineage' }, ...of.map((i) => el('li', {}, el('span', { class: 'tag' }, i.kind), ' ', el('button', { type: 'button', onclick: () => { choose(i.kind, i.id); go(to[i.kind]); } }, nice(i.id))))) : nothing('no reports and no artefacts'))),
      filesOf('run', id),
      el('h2', {}, 'Configuration'),
      table(settings, [['key', (s) => el('code', {}, s.key), 'l'], ['value', (s) => s.values[0] || '–', 'l wrap']], 'none is written'),
    );
  }
}

// ---- curves

const favourites = ['rollout/ep_rew_mean', 'eval/sharpe', 'eval/mean_reward', 'train/loss', 'train/entropy', 'time/fps'];

// repeats says of how many runs a band is, and of how many seeds.
function repeats(band, seed) {
  if (band.seeds === band.runs.length) return `${band.seeds} seeds`;
  return `${band.runs.length} runs` + (band.seeds > 1 ? ` of ${band.seeds} seeds` : band.seeds === 1 ? ` of seed ${seed}` : '');
}

function label(band) {
  const r = state.runs.get(band.runs[0]);
  if (!r) return band.runs[0];
  const same = [...state.runs.values()].filter((x) => x.name === r.name && x.group !== r.group).length > 0;
  const name = same || !r.name ? nice(r.variant) : r.name;
  return band.runs.length > 1 ? `${name} (${repeats(band, r.seed)})` : name + (r.seed !== null ? `, seed ${r.seed}` : '');
}

// curveFigure draws a metric; places say which colour a group or a run has in all figures.
function curveFigure(tag, list, o, places) {
  const title = { title: tag, log: o.log };
  if (o.bands) return lines(list.map((b) => ({ name: label(b), title: b.runs.join('\n'), color: color(places.get(b.group)), x: b.steps ?? [], y: b.mean ?? [], low: b.runs.length > 1 ? b.min : null, high: b.runs.length > 1 ? b.max : null })), title);
  return lines(list.map((s) => ({ name: nice(s.run), title: s.run, color: color(places.get(s.run)), x: s.steps, y: s.mean, low: s.exact ? null : s.min, high: s.exact ? null : s.max })), title);
}

function curvesView(main, fresh) {
  const bands = el('input', { type: 'checkbox', id: 'bands', checked: choices.bands !== false, onchange: () => {
    choose('bands', bands.checked);
    update();
  } });
  const log = el('input', { type: 'checkbox', checked: choices.log === true, onchange: () => {
    choose('log', log.checked);
    update();
  } });
  const said = el('span', { class: 'soft' });
  const chips = el('div', { class: 'chips', role: 'group', 'aria-label': 'metrics' });
  const figures = el('div', { class: 'grid' });
  const settings = el('div', {});
  main.append(el('div', { class: 'tools' }, el('label', {}, bands, 'runs of one configuration as a band'), el('label', {}, log, 'logarithmic'), said), el('details', { open: innerWidth > 900 }, el('summary', {}, 'Metrics'), chips), figures, el('h2', {}, 'What differs in their configurations'), settings);
  let tags = '';
  let compared = '';
  let drawn = 0;
  async function update() {
    const turn = ++drawn;
    const runs = picked();
    said.textContent = `${runs.length} runs` + ((choices.runs ?? []).length ? ' that are ticked' : ', the newest');
    const all = [...new Set(runs.flatMap((id) => state.runs.get(id).tags))].sort();
    const wanted = choices.tags ?? favourites;
    if (tags !== all.join('\n')) {
      tags = all.join('\n');
      chips.replaceChildren(...all.map((t) => {
        const box = el('input', { type: 'checkbox', checked: wanted.includes(t), onchange: () => {
          const list = new Set(choices.tags ?? favourites);
          if (box.checked) list.add(t);
          else list.delete(t);
          choose('tags', [...list]);
          update();
        } });
        return el('label', {}, box, t);
      }));
    }
    const shown = all.filter((t) => wanted.includes(t));
    shown.sort((a, b) => (favourites.indexOf(a) + 99) % 99 - (favourites.indexOf(b) + 99) % 99);
    const places = new Map();
    for (const id of runs) {
      const key = bands.checked ? state.runs.get(id).group : id;
      if (!places.has(key)) places.set(key, places.size);
    }
    const o = { bands: bands.checked, log: log.checked };
    const list = await Promise.all(shown.map((t) => get(o.bands ? 'bands' : 'series', { run: runs, tag: t })));
    if (turn !== drawn) return;
    if (fresh('curves', [o, shown, list])) figures.replaceChildren(...(list.length ? list.map((d, i) => curveFigure(shown[i], d, o, places)) : [nothing('choose metrics above')]));
    // One run of each group stands for it.
    const one = [...new Map(runs.map((id) => [state.runs.get(id).group, id]).reverse()).values()].reverse();
    if (compared !== one.join('\n') && one.length > 0) {
      compared = one.join('\n');
      const rows = (await get('settings', { run: one })).filter((s) => s.key !== 'seeds' && s.key !== 'seed');
      // What all of them have comes first: the rest is of other agents and environments.
      rows.sort((a, b) => a.values.filter((v) => v === '').length - b.values.filter((v) => v === '').length);
      settings.replaceChildren(one.length < 2 ? nothing('they have one configuration') : table(rows, [['key', (s) => el('code', {}, s.key), 'l'], ...one.map((id, i) => [nice(state.runs.get(id).variant), (s) => s.values[i] || '–', 'l wrap'])], 'nothing'));
    }
  }
  return update;
}

// ---- reports

function dateAxis(dates) {
  return (i) => {
    const at = Math.round(i);
    return at >= 0 && at < dates.length ? day(dates[at]) : '';
  };
}

const places = (list) => list.map((_, i) => i);

function reportView(main) {
  const pick = picker('Report', 'report', items('report'), () => update(true));
  const body = el('div', {});
  main.append(el('div', { class: 'tools' }, pick.node), body);
  let shown = '';
  async function update(force) {
    const id = pick.set(items('report'));
    if (!id) return body.replaceChildren(nothing('no reports yet: onnxrl evaluate writes them'));
    if (!force && shown === id + state.structure) return;
    shown = id + state.structure;
    const d = await get('report', { id });
    const main = d.strategies.find((s) => s.role === 'agent')?.name ?? d.curves[0]?.strategy;
    const wanted = [main, d.benchmark, ...d.curves.map((c) => c.strategy).filter((n) => /^(MA\d+|cash)$/.test(n))];
    const curves = wanted.map((n) => d.curves.find((c) => c.strategy === n)).filter(Boolean);
    const dates = curves[0]?.dates ?? [];
    const series = (key) => curves.map((c, i) => ({ name: c.strategy, color: i < 2 ? color(i) : color(i), dash: i > 1, x: places(c.dates), y: c[key] }));
    const x = dateAxis(dates);
    const p = d.positions;
    const columns = [['total_return', 'return', percent], ['sharpe', 'Sharpe', short], ['volatility', 'volatility', percent], ['max_drawdown', 'drawdown', percent], ['cagr', 'CAGR', percent], ['calmar', 'Calmar', short], ['turnover', 'turnover', short]];
    fill(body,
      el('p', { class: 'verdict' }, d.verdict),
      ...d.warnings.map((w) => el('p', { class: 'plain' }, w)),
      el('div', { class: 'two' },
        lines(series('value'), { title: 'Equity', x, note: 'against the benchmark and simple rules' }),
        lines(series('drawdown').slice(0, 2).map((s) => ({ ...s, fill: s.color === 'c0', low: s.color === 'c0' ? s.y.map((v) => v ?? 0) : null, high: s.color === 'c0' ? s.y.map(() => 0) : null })), { title: 'Drawdown', x, y: percent, zero: true, tick: (v) => percent(v) }),
        p ? lines(p.names.map((n, i) => ({ name: n, color: n === 'cash' ? 'grey' : color(i - 1), x: places(p.dates), y: p.weights[i] })), { title: 'Weights', x: dateAxis(p.dates), y: percent, stacked: true, tick: (v) => percent(v) }) : nothing('the report has no positions'),
        bars(tradesBySymbol(d.trades), { title: 'Trades', note: `${count(d.trades_of)} in all; by asset, of the newest ${d.trades.length}`, format: count })),
      el('h2', {}, 'Measures'),
      table(d.strategies, [['strategy', (s) => s.name, 'l'], ...columns.map(([k, name, f]) => [name, (s) => el('span', { 'data-metric': k, 'data-value': s.metrics?.[k] ?? '' }, f(s.metrics?.[k]))])]),
      el('h2', {}, `Trades of ${main}`),
      ...d.limits.map((t) => el('p', { class: 'soft' }, t)),
      table(d.trades, [['date', (t) => day(t.date), 'l'], ['asset', (t) => t.asset, 'l'], ['side', (t) => el('span', { class: t.side === 'buy' ? 'good' : 'plain' }, t.side), 'l'], ['shares', (t) => short(Number(t.shares))], ['price', (t) => short(Number(t.price))], ['amount', (t) => short(Number(t.amount))], ['fee', (t) => short(Number(t.fee))]], 'nothing was traded'),
      filesOf('report', id),
    );
  }
  return update;
}

function tradesBySymbol(trades) {
  const n = new Map();
  for (const t of trades) n.set(`${t.asset} ${t.side}`, (n.get(`${t.asset} ${t.side}`) ?? 0) + 1);
  return [...n].sort().map(([name, value]) => ({ name, value }));
}

// ---- trading: logs and the live service

function orderText(e) {
  if (e.targets) return Object.entries(e.targets).map(([k, v]) => `${k} ${percent(v)}`).join(', ');
  if (Array.isArray(e.orders)) return e.orders.map((o) => [o.side, o.shares ?? o.quantity, o.symbol ?? o.asset].filter((x) => x !== undefined).join(' ')).join(', ');
  return Object.entries(e.orders ?? {}).filter(([, v]) => v !== 'hold').map(([k, v]) => `${v} ${k}`).join(', ');
}

function rejectedText(e) {
  const why = e.because?.join(', ') || 'price_limits';
  if (e.refused) return Object.entries(e.refused).map(([symbol, order]) => `${symbol}: ${order} (${why})`).join('; ');
  if (e.limited && !e.orders) return `${e.limited} (${why})`;
  const list = Array.isArray(e.rejected) ? e.rejected : Object.entries(e.rejected ?? {}).map(([symbol, reason]) => ({ symbol, reason }));
  return list.map((r) => (typeof r === 'string' ? r : `${r.symbol ?? r.asset ?? ''}: ${r.reason ?? JSON.stringify(r)}`)).join('; ');
}

// riskText says which limits held what was wanted back.
function riskText(e) {
  const r = e.risk ?? {};
  return [r.stopped ? 'stopped' : '', r.cut ? 'cut' : '', ...names(r.bound), ...(r.events ?? []).map((x) => `${x.event}${x.symbol ? ' of ' + x.symbol : ''}${x.on ? '' : ' ended'}`)].filter(Boolean).join(', ');
}

// names are a list, or the keys of an object.
const names = (x) => (Array.isArray(x) ? x : Object.keys(x ?? {}));

// gain is a change of money.
const gain = (x) => (x === undefined || x === null ? '–' : (x > 0 ? '+' : '') + short(x));

// standing has the figures of a line of trading; level is that of the CVaR, if it is known.
function standing(e, level) {
  const r = e.risk ?? {};
  const part = (x) => (x === undefined || x === null ? '–' : percent(x));
  return [
    tile('time', e.time ?? '–'), tile('value', short(e.value), '', e.value), tile('cash', short(e.cash), '', e.cash),
    tile('gain of the day', gain(e.pnl_day), e.pnl_day < 0 ? 'bad' : '', e.pnl_day), tile('gain since the beginning', gain(e.pnl), e.pnl < 0 ? 'bad' : '', e.pnl),
    tile('drawdown', part(r.drawdown), '', r.drawdown), tile(level ? `CVaR ${percent(level)}` : 'CVaR', part(r.cvar), '', r.cvar),
    tile('risk', r.stopped ? 'stopped' : r.cut ? 'cut' : 'free', r.stopped ? 'bad' : ''), tile('limits that bind', names(r.bound).join(', ') || 'none'),
  ];
}

const fillText = (e) => (e.fills ?? []).map((f) => `${short(f.shares ?? f.quantity)} ${f.asset ?? f.symbol} at ${short(f.price)}`).join(', ');

function tradingFigures(d) {
  const x = dateAxis(d.times);
  const at = places(d.times);
  return [
    el('div', { class: 'two' },
      lines([{ name: 'value', color: 'c0', x: at, y: d.value, low: d.low, high: d.high }, { name: 'cash', color: 'grey', dash: true, x: at, y: d.cash }], { title: 'Value and cash', x }),
      lines([{ name: 'drawdown', color: 'c1', fill: true, x: at, y: d.drawdown, low: d.drawdown, high: d.drawdown.map(() => 0) }], { title: 'Drawdown', x, y: percent, zero: true, tick: (v) => percent(v) }),
      lines(d.symbols.map((s, i) => ({ name: s, color: color(i), x: at, y: d.positions[i] })), { title: 'Positions', note: 'shares', x, zero: true }),
      ...(d.weights.length ? [lines([...d.symbols.map((s, i) => ({ name: s, color: color(i), x: at, y: d.weights[i] })), { name: 'cash', color: 'grey', dash: true, x: at, y: d.cash.map((c, i) => c / d.value[i]) }], { title: 'Weights', note: 'of the value', x, y: percent, zero: true, tick: (v) => percent(v) })] : []),
      el('div', {},
        bars(Object.entries(d.orders).filter(([name]) => name !== 'hold').sort().map(([name, value]) => ({ name, value })), { title: 'Orders', note: `${count(d.fills)} fills${d.orders.hold ? `; held ${count(d.orders.hold)} times` : ''}`, format: count }),
        bars(Object.entries(d.rejected).sort((a, b) => b[1] - a[1]).map(([name, value]) => ({ name, value, below: true })), { title: 'Rejections by reason', format: count }))),
    el('h2', {}, 'Orders and rejections'),
    table(d.events, [['time', (e) => e.time, 'l'], ['value', (e) => short(e.value)], ['orders', (e) => orderText(e) || '–', 'l wrap'], ['fills', (e) => fillText(e) || '–', 'l wrap'], ['rejected', (e) => el('span', { class: rejectedText(e) ? 'bad' : 'soft' }, rejectedText(e) || '–'), 'l wrap'], ['limits', (e) => el('span', { class: riskText(e) ? 'plain' : 'soft' }, riskText(e) || '–'), 'l wrap']], 'nothing yet'),
    el('p', { class: 'soft' }, `the newest ${d.events.length} of ${count(d.events_of)} lines${d.bad ? `; ${d.bad} could not be read` : ''}`),
  ];
}

function tradingView(main, fresh) {
  const pick = picker('Log', 'trading', items('trading'), () => update());
  const body = el('div', {});
  main.append(el('div', { class: 'tools' }, pick.node), body);
  return update;
  async function update() {
    const id = pick.set(items('trading'));
    if (!id) return body.replaceChildren(nothing('no logs yet: onnxrl data live writes them to its standard output; keep it as NAME.jsonl'));
    const d = await get('trading', { id });
    if (fresh('trading', d)) fill(body, ...(d.events.length ? [el('div', { class: 'tiles' }, ...standing(d.events[0]))] : []), ...tradingFigures(d), filesOf('trading', id));
  }
}

function liveView(main, fresh) {
  const body = el('div', {});
  main.append(body);
  return async () => {
    if (!state.live) return body.replaceChildren(nothing('no live service: onnxrl dashboard --live URL shows one'));
    const l = await get('live');
    const s = l.state ?? {};
    const last = s.last ?? {};
    const weights = Object.entries(last.weights ?? {});
    const digest = (text) => String(text || '–').replace(/(sha256:[0-9a-f]{8})[0-9a-f]+/, '$1…');
    if (!fresh('live', l)) return;
    fill(body,
      el('div', { class: 'tiles' },
        tile(s.name ?? 'live', l.connected ? 'connected' : 'not connected', l.connected ? '' : 'bad'),
        tile('policy', digest(s.policy)), ...(s.shadow ? [tile('decides beside', digest(s.shadow))] : []), ...standing(last, s.cvar_level),
        tile('kill switch', s.killed ? 'killed' : 'off', s.killed ? 'bad' : '')),
      ...(l.problem ? [el('p', { class: 'bad' }, l.problem)] : []),
      ...(s.reason ? [el('p', { class: 'bad' }, s.reason)] : []),
      ...tradingFigures(l.trading),
      el('div', { class: 'two' },
        bars(weights.map(([name, value]) => ({ name, value })), { title: 'Weights now', format: percent, most: 1 }),
        el('div', {}, el('h2', {}, 'Counters'), table([...Object.entries(s.counters ?? {}), ...Object.entries(s.alerts ?? {}).map(([k, v]) => [`alerts ${k}`, v])], [['counter', ([k]) => k, 'l'], ['count', ([, v]) => count(v)]]))),
    );
  };
}

// ---- populations

function populationView(main, fresh) {
  const pick = picker('Population', 'population', items('population'), () => update());
  const body = el('div', {});
  main.append(el('div', { class: 'tools' }, pick.node), body);
  return update;
  async function update() {
    const id = pick.set(items('population'));
    if (!id) return body.replaceChildren(nothing('no populations yet: onnxrl evolve and onnxrl train population write them'));
    const d = await get('population', { id });
    const g = d.generations;
    const names = g.map((_, i) => i);
    const members = g[0]?.map((m) => m.member) ?? [];
    const rowNames = members.map((m) => `member ${m}`);
    const by = (f) => members.map((m) => g.map((list) => f(list[m]) ?? null));
    const best = g.map((list) => list.reduce((a, m) => (m.score !== null && (a === null || (d.minimize ? m.score < a : m.score > a)) ? m.score : a), null));
    const last = g[g.length - 1] ?? [];
    if (!fresh('population', d)) return;
    fill(body,
      g.length ? tree(g, { title: 'Genealogy', minimize: d.minimize, note: 'deeper is a better score; orange lines take over weights of another member' }) : nothing('no generation has ended yet'),
      el('div', { class: 'two' },
        lines([...members.map((m) => ({ name: `member ${m}`, quiet: true, color: 'grey', x: names, y: g.map((l) => l[m]?.score ?? null) })), { name: 'best', color: 'c0', x: names, y: best }], { title: 'Scores', note: `${d.metric || 'score'} by generation, of each member and the best` }),
        lines([{ name: 'MAPD', color: 'c2', x: names, y: d.mapd }], { title: 'Mean action pairwise distance', note: 'by generation', zero: true }),
        heat(by((m) => m?.distance), { title: 'MAPD of each member', note: 'mean distance to the others, by generation', rows: rowNames, columns: names }),
        ...d.paths.map((p) => lines(members.map((m, i) => ({ name: `member ${m}`, color: color(i), x: names, y: g.map((l) => l[m]?.values[p] ?? null) })), { title: p, note: 'hyper-parameter by generation', log: true })),
        ...(d.replay ? [
          heat(d.replay.share, { title: 'Replay mix', note: `generation ${d.replay.generation}: whose transitions (columns) a member (rows) learns from`, rows: d.replay.members.map((m) => `member ${m}`), columns: d.replay.policies.map((p) => `policy ${p}`), low: 0, format: percent }),
          heat(d.replay.age, { title: 'Replay ages', note: 'in transitions', rows: d.replay.members.map((m) => `member ${m}`), columns: d.replay.policies.map((p) => `policy ${p}`), format: short }),
        ] : []),
        ...(d.usage ? [bars(d.usage.probability.map((p, i) => ({ name: `expert ${i}`, value: p, note: `${percent(p)}, ${d.usage.chosen[i]}×` })), { title: 'Router usage', note: `mean probability, and how often chosen, on the ${d.usage.rows} recorded observations of ${d.usage.artefact}`, most: 1 })] : [])),
      el('h2', {}, 'Newest generation'),
      table(last, [['member', (m) => m.member, 'l'], ['action', (m) => m.action, 'l'], ['parent', (m) => (m.parent < 0 ? '–' : m.parent)], ['env steps', (m) => count(m.env_steps)], ['score', (m) => short(m.score)], ['distance', (m) => short(m.distance)], ...d.paths.map((p) => [p, (m) => short(m.values[p])]), ['rolled back', (m) => m.rolled_back, 'l']]),
      el('details', {}, el('summary', {}, 'Document'), el('pre', { tabindex: 0 }, d.document)),
    );
  }
}

// ---- worlds

function worldView(main) {
  const pick = picker('World', 'world', items('world'), () => update(true));
  const agents = picker('Contracts of', 'agent', [{ id: '', text: 'all' }], () => update(true));
  const body = el('div', {});
  main.append(el('div', { class: 'tools' }, pick.node, agents.node), body);
  let shown = '';
  return update;
  async function update(force) {
    const id = pick.set(items('world'));
    if (!id) return body.replaceChildren(nothing('no worlds yet: onnxrl scml run --out world.json writes one'));
    if (!force && shown === id + state.structure) return;
    shown = id + state.structure;
    const d = await get('world', { id });
    const who = agents.set([{ id: '', text: 'all' }, ...d.agents.map((a) => ({ id: a.name }))]);
    const x = d.negotiations.map((_, i) => i);
    const products = (key) => d[key].map((y, p) => ({ name: `product ${p}`, color: color(p), x, y }));
    const of = (key) => d.agents.map((a, i) => ({ name: a.name, color: color(i), quiet: who !== '' && a.name !== who, x, y: a[key] })).filter((s) => !who || s.name === who);
    const contracts = d.contracts.filter((c) => !who || c.seller === who || c.buyer === who);
    fill(body,
      el('div', { class: 'tiles' }, tile('seed', d.seed), tile('days', d.days), tile('products', d.products), tile('agents', d.agents.length), tile('contracts signed', count(d.contracts_of))),
      el('div', { class: 'two' },
        lines(products('trading_price'), { title: 'Trading prices', note: 'by day' }),
        lines(products('sold'), { title: 'Sold', note: 'by day', zero: true }),
        lines(of('score'), { title: 'Scores', note: 'by day' }),
        lines(of('balance'), { title: 'Balances', note: 'by day' }),
        lines(of('input'), { title: 'Stock of inputs', note: 'by day', zero: true }),
        lines(of('output'), { title: 'Stock of outputs', note: 'by day', zero: true }),
        lines([['concluded', 'c0'], ['signed', 'c3'], ['executed', 'c2'], ['dropped', 'c1']].map(([k, c]) => ({ name: k, color: c, x, y: d[k] })), { title: 'Contracts', note: 'by day', zero: true }),
        bars([...d.agents].sort((a, b) => (b.final ?? 0) - (a.final ?? 0)).map((a) => ({ name: `${a.name} ${a.type}`, value: a.final ?? a.score.at(-1), chosen: a.name === who })), { title: 'Final scores' })),
      el('h2', {}, 'Contracts'),
      table(contracts, [['contract', (c) => c.id, 'l'], ['signed on day', (c) => c.day], ['seller', (c) => c.seller, 'l'], ['buyer', (c) => c.buyer, 'l'], ['quantity', (c) => c.quantity], ['unit price', (c) => c.unit_price], ['delivery', (c) => c.delivery], ['state', (c) => el('span', { class: c.state === 'dropped' ? 'bad' : c.state === 'executed' ? 'good' : 'soft' }, c.state), 'l']]),
      filesOf('world', id),
    );
  }
}

// ---- resources

const seen = new Map(); // run: { cpu: [[t, v]], memory }

function measure() {
  for (const r of state.runs.values()) {
    if (!r.process) continue;
    const s = seen.get(r.id) ?? { at: [], cpu: [], memory: [] };
    seen.set(r.id, s);
    s.at.push(state.now);
    s.cpu.push(r.process.cpu);
    s.memory.push(r.process.memory);
    if (s.at.length > 600) for (const l of [s.at, s.cpu, s.memory]) l.shift();
  }
}

function resourcesView(main) {
  const body = el('div', {});
  main.append(body);
  return async () => {
    const runs = picked();
    const list = await get('series', { run: runs, tag: 'time/fps' });
    const x = (s) => time(s);
    const series = (key) => [...seen].map(([id, s], i) => ({ name: nice(id), title: id, color: color(i), x: s.at, y: s[key] }));
    const running = [...state.runs.values()].filter((r) => r.process);
    fill(body,
      el('div', { class: 'tiles' }, tile('runs going on', count([...state.runs.values()].filter((r) => r.state === 'running').length)), tile('cores in use', short(running.reduce((n, r) => n + (r.process.cpu ?? 0), 0))), tile('memory of trainings', bytes(running.reduce((n, r) => n + r.process.memory, 0))), tile('memory of this dashboard', bytes(state.memory)), tile('points per curve at most', count(state.buckets))),
      el('div', { class: 'two' },
        lines(list.map((s, i) => ({ name: nice(s.run), title: s.run, color: color(i), x: s.steps, y: s.mean })), { title: 'Env steps per second', note: 'as runs log it' }),
        lines(series('cpu'), { title: 'Cores in use', note: 'since this page was opened', x, zero: true }),
        lines(series('memory'), { title: 'Memory', note: 'resident, since this page was opened', x, y: bytes, tick: bytes, zero: true })),
      el('h2', {}, 'Runs'),
      table(runs.map((id) => state.runs.get(id)), [['run', (r) => nice(r.id), 'l'], ['env steps/s', (r) => short(r.fps)], ['took', (r) => duration(r.updated - r.began)], ['engine', (r) => r.engine, 'l'], ['threads', (r) => r.threads], ['process', (r) => r.process?.pid], ['cores', (r) => short(r.process?.cpu)], ['memory', (r) => bytes(r.process?.memory)]]),
    );
  };
}

// ---- artefacts and decisions

function artefactsView(main) {
  const pick = picker('Store', 'store', items('store'), () => update(true));
  const body = el('div', {});
  main.append(el('div', { class: 'tools' }, pick.node), body);
  let shown = '';
  return update;
  async function update(force) {
    const id = pick.set(items('store'));
    if (!id) return body.replaceChildren(nothing('no artefacts yet: a run publishes its best policy when it ends'));
    if (!force && shown === id + state.structure) return;
    shown = id + state.structure;
    const list = await get('artefacts', { id });
    body.replaceChildren(...list.flatMap((a) => [
      el('h2', {}, `${a.name} `, el('code', {}, brief(a.digest)), ...a.aliases.flatMap((x) => [' ', el('span', { class: 'tag' }, x)])),
      el('p', { class: 'soft' }, `${a.description}; published ${a.published || '–'} after ${count(a.env_step)} env steps, seed ${a.seed ?? '–'}, by ${a.code_version}`),
      el('div', { class: 'two' },
        table(Object.entries(a.metrics).sort(), [['measure', ([k]) => k, 'l'], ['value', ([, v]) => short(v)]], 'no measures'),
        el('div', {},
          el('b', {}, 'Lineage'),
          el('ul', { class: 'lineage' }, ...a.lineage.map((p) => {
            const li = el('li', {}, '↳ '.repeat(p.depth), p.name ? `${p.name} ` : 'made elsewhere ', el('code', { title: p.digest }, brief(p.digest)), ' ', p.store && p.store !== id ? el('button', { type: 'button', onclick: () => { choose('store', p.store); go('artefacts', true); } }, nice(p.store)) : '');
            return li;
          })),
          el('p', {}, el('b', {}, 'Configuration '), el('code', { title: a.config_digest }, brief(a.config_digest || '–'))),
          el('p', {}, el('b', {}, 'Data '), el('code', { title: a.data_digest }, brief(a.data_digest || '–'))),
          a.golden && state.explains ? el('button', { type: 'button', onclick: () => { choose('decision', id + '\n' + a.digest); go('decision'); } }, `Explain one of ${a.golden} recorded decisions`) : '')),
      table(a.files, [['file', (f) => el('button', { type: 'button', onclick: () => save({ kind: 'store', id, version: a.digest, path: f.title }, f.title.split('/').pop()).catch(tell) }, f.title), 'l'], ['size', (f) => bytes(f.size)], ['digest', (f) => el('code', {}, brief(f.digest)), 'l']]),
    ]));
  }
}

function decisionView(main) {
  const body = el('div', {});
  const pick = picker('Policy', 'decision', [], () => update(true));
  const row = el('input', { id: 'row', type: 'number', min: 0, value: 0, onchange: () => update(true) });
  const head = el('select', { id: 'head', onchange: () => update(true) });
  main.append(el('div', { class: 'tools' }, pick.node, el('label', {}, 'Recorded decision', row), el('label', {}, 'Action', head)), body);
  let shown = '';
  let listed = -1;
  return update;
  async function update(force) {
    if (!state.explains) return body.replaceChildren(nothing('this program explains no decisions'));
    if (listed !== state.structure) {
      listed = state.structure;
      const all = await Promise.all(items('store').map(async (s) => ({ id: s.id, list: await get('artefacts', { id: s.id }) })));
      pick.set(all.flatMap((s) => s.list.filter((a) => a.golden).map((a) => ({ id: s.id + '\n' + a.digest, text: `${a.name} ${brief(a.digest)} in ${nice(s.id)}` }))));
    }
    if (!pick.value) return body.replaceChildren(nothing('no published policies with recorded decisions yet'));
    const now = `${pick.value} ${row.value} ${head.value}`;
    if (!force && shown === now) return;
    const [id, version] = pick.value.split('\n');
    const e = await get('explain', { id, version, row: row.value || 0, head: head.value || 0 });
    if (head.options.length !== e.heads.length || head.options[0]?.text !== e.heads[0].name) head.replaceChildren(...e.heads.map((h, i) => el('option', { value: i }, h.name)));
    head.value = e.head;
    row.max = e.rows - 1;
    shown = `${pick.value} ${row.value} ${head.value}`;
    const h = e.heads[e.head];
    fill(body,
      el('div', { class: 'tiles' }, tile('decision', `${e.row + 1} of ${e.rows}`), tile(h.name, h.value === null ? h.options[h.chosen] : short(h.value)), ...(h.scores ? [tile('estimated return', short(h.scores[h.chosen]))] : h.value === null ? [tile('probability', percent(h.probabilities[h.chosen]))] : []), tile('value of the state', short(e.value))),
      el('div', { class: 'two' },
        h.scores
          ? bars(h.options.map((o, i) => ({ name: o, value: h.scores[i], note: short(h.scores[i]) + (h.allowed[i] ? '' : ' masked'), off: !h.allowed[i], chosen: i === h.chosen })), { title: `Estimated returns for ${h.name}`, note: 'struck out: masked; green: chosen' })
          : h.value === null
          ? bars(h.options.map((o, i) => ({ name: o, value: h.probabilities[i], note: percent(h.probabilities[i]) + (h.allowed[i] ? '' : ' masked'), off: !h.allowed[i], chosen: i === h.chosen })), { title: `Probabilities for ${h.name}`, note: 'struck out: masked; green: chosen', most: 1 })
          : bars(e.heads.map((x) => ({ name: x.name, value: x.value, chosen: x.name === h.name })), { title: 'Action' }),
        e.influences.length === 0 ? nothing(e.notes[0] ?? 'no element of the observation changes it') : bars(e.influences.slice(0, 15).map((i) => ({ name: i.label, value: i.product, title: `value ${i.value}, gradient ${i.gradient}` })), { title: 'What changes it most', note: `gradient × value, of ${e.objective}` })),
      el('h2', {}, 'Observation'),
      table(e.inputs, [['input', (i) => i.name, 'l'], ['shape', (i) => i.shape.join(' × ') || '1', 'l'], ['least', (i) => short(i.min)], ['mean', (i) => short(i.mean)], ['greatest', (i) => short(i.max)], ['no numbers', (i) => i.missing], ['influence', (i) => short(i.gradient)], ['meaning', (i) => i.description, 'l wrap']]),
      ...e.inputs.map((i) => el('details', {}, el('summary', {}, `${i.name}: ${i.values.length === i.shape.reduce((a, b) => a * b, 1) ? 'all' : 'the first ' + i.values.length} values`), table(i.values.map((v, k) => [i.labels[k], v]), [['element', ([n]) => n, 'l'], ['value', ([, v]) => short(v)]]))),
      ...(e.heads.length > 1 && h.value === null ? [el('h2', {}, 'All actions'), table(e.heads, [['action', (x) => x.name, 'l'], ['chosen', (x) => x.options[x.chosen], 'l'], ['probability', (x) => percent(x.probabilities[x.chosen])], ['masked', (x) => x.options.filter((_, i) => !x.allowed[i]).join(', ') || '–', 'l']])] : []),
      ...e.notes.map((n) => el('p', { class: 'soft' }, n)),
    );
  }
}

// ---- views

// views are key, name, function that builds it and returns its update, and what it needs.
const views = [
  ['runs', 'Runs', runsView, () => state.runs.size],
  ['run', 'Run', runView, () => state.runs.size],
  ['curves', 'Curves', curvesView, () => state.runs.size],
  ['report', 'Equity', reportView, () => items('report').length],
  ['trading', 'Trading', tradingView, () => items('trading').length],
  ['live', 'Live', liveView, () => state.live],
  ['population', 'Population', populationView, () => items('population').length],
  ['world', 'SCML', worldView, () => items('world').length],
  ['decision', 'Decision', decisionView, () => state.explains && items('store').length],
  ['artefacts', 'Artefacts', artefactsView, () => items('store').length],
  ['resources', 'Resources', resourcesView, () => state.runs.size],
];

function go(key, again) {
  if (location.hash === '#' + key && again) show();
  else location.hash = '#' + key;
}

function show() {
  const key = location.hash.slice(1);
  const [name, title, build] = views.find(([k]) => k === key) ?? views[0];
  $('main').replaceChildren();
  document.title = `${title} – onnxrl dashboard`;
  for (const a of $('views').children) {
    if (a.dataset.view === name) {
      a.setAttribute('aria-current', 'page');
      a.scrollIntoView({ inline: 'center', block: 'nearest' });
    }
    else a.removeAttribute('aria-current');
  }
  view = { key: name, drawn: new Map() };
  view.update = build($('main'), freshOf(view));
  refreshView();
}

let refreshing = false;
let again = false;

// refreshView has one update at a time; what comes meanwhile is one more.
async function refreshView() {
  if (refreshing) {
    again = true;
    return;
  }
  refreshing = true;
  do {
    again = false;
    // Nobody likes a chart to change while it is read.
    while (view.shown && reading($('main'))) await new Promise((resolve) => setTimeout(resolve, 200));
    const now = view;
    try {
      await now.update();
      tell(state.problem ? new Error(state.problem) : null);
    } catch (e) {
      if (now === view && !(e instanceof Refused)) tell(e);
    }
    now.shown = true;
    if (now === view) document.body.dataset.shown = `${now.key} ${state.version}`;
  } while (again);
  refreshing = false;
}

async function overview() {
  const o = await get('overview', { since: state.version });
  if (o.version < state.version) { // another dashboard than before
    state.version = 0;
    state.runs.clear();
    return overview();
  }
  for (const r of state.runs.values()) r.process = null;
  for (const r of o.runs) state.runs.set(r.id, r);
  const ids = new Set(o.items.filter((i) => i.kind === 'run').map((i) => i.id));
  for (const id of state.runs.keys()) if (!ids.has(id)) state.runs.delete(id);
  Object.assign(state, { version: o.version, structure: o.structure, items: o.items, now: o.now, live: o.live, explains: o.explains, problem: o.problem, memory: o.memory, buckets: o.buckets, program: o.program });
  state.folder = commonFolder(o.items.map((i) => i.id));
  measure();
  const going = [...state.runs.values()].filter((r) => r.state === 'running').length;
  const reading = [...state.runs.values()].filter((r) => r.state === 'reading').length;
  $('status').textContent = `${count(state.runs.size)} runs${going ? `, ${going} going on` : ''}${reading ? `, reading ${reading}` : ''}`;
  views.forEach(([, , , has], i) => $('views').children[i].classList.toggle('none', !has()));
}

// listen follows the server's events until they end.
async function listen() {
  const r = await ask('data/events');
  const reader = r.body.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const { value, done } = await reader.read();
    if (done) throw new Error('the dashboard has ended');
    if (!value.includes('data:')) continue;
    await overview();
    if (!view) show();
    else refreshView();
  }
}

async function follow() {
  for (let wait = 1000; ; wait = Math.min(wait * 2, 15000)) {
    try {
      await listen();
    } catch (e) {
      if (e instanceof Refused) {
        $('status').textContent = 'Locked';
        await unlocked();
        wait = 500;
        continue;
      }
      $('status').textContent = 'Not connected: ' + e.message;
    }
    await new Promise((resolve) => setTimeout(resolve, wait));
  }
}

for (const [key, title] of views) $('views').append(el('a', { href: '#' + key, 'data-view': key }, title));
addEventListener('hashchange', () => view && show());
addEventListener('keydown', (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(e.target.tagName)) return;
  if (e.key >= '1' && e.key <= '9') go(views[Number(e.key) - 1][0]);
  else if (e.key === '0') go(views[9][0]);
  else if (e.key === '-') go(views[10][0]);
  else if (e.key === 't') theme();
  else if (e.key === '/') {
    e.preventDefault();
    go('runs');
    setTimeout(() => $('filter')?.focus());
  }
});
follow();
