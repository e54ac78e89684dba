// The page polls page/data for counters that only grow, and draws what happened between two polls. Everything that comes from the server is set as text, never as markup.

import { $, bars, brief, count, duration, el, fill, get, lines, percent, reading, Refused, short } from './kit.js';

const every = 1000, kept = 120; // milliseconds between polls; polls that the charts show

// microseconds with a unit
function time(us) {
  if (us === null || us === undefined) return '–';
  if (us < 1000) return short(Number(us.toPrecision(3))) + ' µs';
  if (us < 1e6) return short(Number((us / 1000).toPrecision(3))) + ' ms';
  return short(Number((us / 1e6).toPrecision(3))) + ' s';
}

// clip keeps both ends of a long name, which is where names differ.
function clip(text, most) {
  const letters = [...text];
  if (letters.length <= most) return text;
  const head = Math.ceil((most * 2) / 3);
  return letters.slice(0, head).join('') + '…' + letters.slice(head + 1 - most).join('');
}

// ---- polling

let wanted = decodeURIComponent(location.hash.slice(1)); // the reader's choice
let chosen = wanted;
let last = null; // the poll before: { at, stats by key }
const history = new Map(); // by model: a list of { rate, p50, p99 }

async function poll() {
  try {
    show(await get('page/data'));
  } catch (e) {
    last = null;
    $('status').className = 'bad';
    $('status').textContent = e instanceof Refused ? 'Locked: ' + e.message : 'No connection: ' + e.message;
  }
  setTimeout(poll, every);
}

// quantile of what fell into the buckets, interpolated; bounds are upper ends in microseconds and counts has one element more.
function quantile(bounds, counts, q) {
  const total = counts.reduce((a, b) => a + b, 0);
  if (total === 0) return null;
  let left = q * total;
  for (let i = 0; i < counts.length; i++) {
    if (left > counts[i] || counts[i] === 0) {
      left -= counts[i];
      continue;
    }
    const low = i === 0 ? 0 : bounds[i - 1];
    if (i === bounds.length) return low;
    return low + (bounds[i] - low) * (left / counts[i]);
  }
  return bounds[bounds.length - 1];
}

// since is what happened between two states of counters, a and b, in the given seconds.
function since(a, b, bounds, seconds) {
  const n = b.requests - a.requests;
  // A server that began anew counts from zero.
  if (n < 0 || seconds <= 0) return null;
  const counts = b.latency.map((c, i) => c - (a.latency[i] ?? 0));
  return { rate: n / seconds, p50: quantile(bounds, counts, 0.5), p99: quantile(bounds, counts, 0.99) };
}

const none = { requests: 0, latency: [] };

function total(versions) {
  const sum = { requests: 0, latency: [] };
  for (const v of versions) {
    sum.requests += v.stats.requests;
    v.stats.latency.forEach((c, i) => (sum.latency[i] = (sum.latency[i] ?? 0) + c));
  }
  return sum;
}

function show(data) {
  const seconds = last ? data.uptime_seconds - last.at : 0;
  const seen = { at: data.uptime_seconds, stats: new Map() };
  const rows = [];
  const names = data.models.map((m) => m.name);
  chosen = choose(data.models, wanted, chosen);
  for (const m of data.models) {
    for (const v of m.versions) {
      const key = m.name + '\n' + v.version;
      seen.stats.set(key, v.stats);
      rows.push(...row(m, v, last && since(last.stats.get(key) ?? none, v.stats, data.bounds_us, seconds)));
    }
    const sum = total(m.versions);
    seen.stats.set(m.name, sum);
    const past = history.get(m.name) ?? [];
    if (last) past.push(since(last.stats.get(m.name) ?? none, sum, data.bounds_us, seconds) ?? { rate: 0, p50: null, p99: null });
    history.set(m.name, past.slice(-kept));
  }
  for (const name of history.keys()) if (!names.includes(name)) history.delete(name);
  const body = $('models').tBodies[0];
  // Replacing the rows would take the focus of the keyboard away.
  const focus = document.activeElement?.dataset?.model;
  body.replaceChildren(...rows);
  if (rows.length === 0) body.append(el('tr', {}, el('td', { colspan: columns(), class: 'soft' }, 'No models are served.')));
  if (focus !== undefined) [...body.querySelectorAll('button')].find((b) => b.dataset.model === focus)?.focus();
  $('status').className = 'soft';
  $('status').textContent = [data.server + ' ' + data.version, data.engine, 'up ' + duration(data.uptime_seconds)].join(' · ');
  last = seen;
  const model = data.models.find((m) => m.name === chosen);
  $('detail').hidden = !model;
  if (model) detail(model);
}

const ready = (model) => model?.versions.some((v) => v.state === 'READY') ?? false;

// choose is what the reader wants, where it is there; otherwise what was shown before, as long as it is ready, and then the first that is.
function choose(models, wanted, before) {
  const find = (name) => models.find((m) => m.name === name);
  if (find(wanted)) return wanted;
  if (ready(find(before))) return before;
  return (models.find(ready) ?? find(before) ?? models[0])?.name ?? '';
}

const columns = () => $('models').tHead.rows[0].cells.length;

function row(m, v, now) {
  const name = el('button', { type: 'button', class: 'name', 'data-model': m.name, title: m.name }, clip(m.name, 30));
  name.addEventListener('click', () => {
    location.hash = encodeURIComponent(m.name);
  });
  const state = el('td', {}, el('span', { class: v.state === 'READY' ? 'good' : v.state === 'UNAVAILABLE' ? 'bad' : 'plain' }, v.state.toLowerCase()));
  const aliases = el('td', {}, el('span', {}, ...v.aliases.map((a) => el('span', { class: 'tag', title: a }, clip(a, 16)))));
  const s = v.stats;
  const cells = [count(s.requests), count(s.failures), count(s.pending), s.executions ? short(s.rows / s.executions) : '–', now ? short(now.rate) : '–', time(now?.p50), time(now?.p99)];
  const line = el('tr', m.name === chosen ? { class: 'chosen' } : {}, el('td', {}, name), el('td', { title: v.version }, brief(v.version)), aliases, state, ...cells.map((c) => el('td', {}, c)));
  // A line of its own, so that a long reason leaves the columns where they are.
  // A narrow screen shows no heads.
  [...line.children].forEach((c, i) => (c.dataset.label = $('models').tHead.rows[0].cells[i].textContent));
  return v.reason ? [line, el('tr', { class: m.name === chosen ? 'why chosen' : 'why' }, el('td', { colspan: columns(), class: 'soft' }, v.reason))] : [line];
}

// ---- charts

const before = Array.from({ length: kept }, (_, i) => ((i + 1 - kept) * every) / 1000);
const ago = (s) => (s === 0 ? 'now' : `−${-s} s`);

function charts(past) {
  // Nobody likes a chart to change while it is read.
  if (reading($('charts'))) return;
  const series = (name, color, key) => ({ name, color, x: before, y: [...Array(kept - past.length).fill(null), ...past.map((p) => p[key])] });
  fill($('rate'), lines([series('requests/s', 'c0', 'rate')], { title: 'Requests per second', note: 'over the last two minutes', x: ago, zero: true }));
  fill($('latency'), lines([series('p50', 'c0', 'p50'), series('p99', 'c1', 'p99')], { title: 'Latency in the server', note: 'over the last two minutes', x: ago, y: time, tick: (v) => (v === 0 ? '0' : time(v)), zero: true }));
}

// ---- the request

let form = { model: '', version: '', inputs: [] }; // the fields, and the version that they were made for

async function detail(model) {
  charts(history.get(model.name) ?? []);
  const version = model.versions.find((v) => v.default && v.state === 'READY') ?? model.versions.find((v) => v.state === 'READY');
  $('send').disabled = !version;
  if (!version) {
    form = { model: '', version: '', inputs: [] };
    $('chosen').textContent = model.name;
    $('about').textContent = 'No version of it is ready.';
    $('inputs').replaceChildren();
    $('answer').replaceChildren();
    return;
  }
  if (form.model === model.name && form.version === version.version) return;
  const before = form;
  form = { model: model.name, version: version.version, inputs: before.inputs };
  const mine = form;
  try {
    const d = await get('page/model?' + new URLSearchParams({ name: model.name, version: version.version }));
    if (form === mine) describe(d, before);
  } catch (e) {
    if (form === mine) form = before;
    $('problem').textContent = e.message;
  }
}

function describe(d, before) {
  $('chosen').textContent = form.model;
  $('about').textContent = d.description ?? '';
  // A new version with the same inputs keeps what was typed.
  if (before.model === form.model && JSON.stringify(before.inputs.map((f) => f.port)) === JSON.stringify(d.inputs)) return;
  form.inputs = d.inputs.map((port) => field(port, d.sample?.[port.name]));
  $('inputs').replaceChildren(...form.inputs.map((f) => f.set));
  $('fill-sample').hidden = !d.sample;
  $('problem').textContent = '';
  $('answer').replaceChildren(el('p', { class: 'soft' }, 'The answer appears here.'));
  enter(d.sample ? 'sample' : 'random');
}

function field(port, sample) {
  const axes = port.shape.map((n, i) => {
    if (n >= 0) return null;
    const input = el('input', { type: 'number', min: 1, max: 4096, value: sample?.shape[i] ?? 1 });
    input.addEventListener('change', () => enter('random'));
    return input;
  });
  const values = el('textarea', { 'aria-label': 'values of ' + port.name, spellcheck: 'false' });
  const shape = port.shape.map((n, i) => (n >= 0 ? String(n) : port.axes?.[i] || '?')).join(' × ') || 'scalar';
  const set = el('fieldset', {}, el('legend', {}, port.name + ' ', el('span', { class: 'soft' }, port.datatype + ' ' + shape)));
  if (port.description) set.append(el('p', { class: 'soft' }, port.description));
  axes.forEach((a, i) => a && set.append(el('label', {}, (port.axes?.[i] || 'axis ' + i) + ' ', a)));
  set.append(values);
  return { port, sample, axes, values, set, shape: () => port.shape.map((n, i) => (n >= 0 ? n : Number(axes[i].value))) };
}

function enter(how) {
  for (const f of form.inputs) {
    const { port } = f;
    if (how === 'sample' && f.sample) {
      f.axes.forEach((a, i) => a && (a.value = f.sample.shape[i]));
      f.values.value = f.sample.data.join(', ');
      continue;
    }
    const n = f.shape().reduce((a, b) => a * b, 1);
    if (!(n >= 0 && n <= 1 << 20)) continue;
    const text = new Array(n);
    for (let i = 0; i < n; i++) text[i] = value(port, how, i);
    f.values.value = text.join(', ');
  }
}

const between = (low, high) => low + Math.random() * (high - low);

function value(port, how, i) {
  // A mask that forbids everything is no request.
  if (port.datatype === 'BOOL' || /mask/.test(port.name)) return port.datatype === 'BOOL' ? 'true' : 1;
  const low = port.low?.[port.low.length === 1 ? 0 : i % port.low.length], high = port.high?.[port.high.length === 1 ? 0 : i % port.high.length];
  const whole = /INT/.test(port.datatype);
  if (how === 'zeros') return Math.min(Math.max(0, Number(low ?? -Infinity)), Number(high ?? Infinity));
  if (Number.isFinite(low) && Number.isFinite(high)) return whole ? Math.floor(between(low, high + 1)) : Number(between(low, high).toPrecision(5));
  if (whole) return Number.isFinite(low) ? low : 0;
  return Number((Math.sqrt(-2 * Math.log(1 - Math.random())) * Math.cos(2 * Math.PI * Math.random())).toPrecision(4));
}

// Tensors with numbers that JSON does not have go after it, in binary.
const floats = { FP32: Float32Array, FP64: Float64Array };

function packed(inputs) {
  const parts = [];
  for (const t of inputs) {
    if (!(t.datatype in floats) || t.data.every(Number.isFinite)) continue;
    const binary = floats[t.datatype].from(t.data);
    delete t.data;
    t.parameters = { binary_data_size: binary.byteLength };
    parts.push(binary);
  }
  const json = new TextEncoder().encode(JSON.stringify({ inputs }));
  if (parts.length === 0) return { headers: { 'Content-Type': 'application/json' }, body: json };
  return { headers: { 'Content-Type': 'application/octet-stream', 'Inference-Header-Content-Length': String(json.length) }, body: new Blob([json, ...parts]) };
}

function parse(f) {
  const n = f.shape().reduce((a, b) => a * b, 1);
  const words = f.values.value.split(/[\s,;[\]]+/).filter((w) => w !== '');
  if (words.length !== n) throw new Error(f.port.name + ': ' + count(words.length) + ' values, expected ' + count(n) + ' for the shape ' + f.shape().join(' × '));
  const data = words.map((w, i) => {
    if (f.port.datatype === 'BYTES') return w;
    if (f.port.datatype === 'BOOL' && /^(true|false|0|1)$/.test(w)) return w === 'true' || w === '1';
    const x = /^nan$/i.test(w) ? NaN : Number(w);
    if (!Number.isFinite(x) && !(f.port.datatype in floats && /^(nan|[+-]?infinity)$/i.test(w))) throw new Error(f.port.name + ': value ' + (i + 1) + ' is ' + w + ', expected a number');
    return x;
  });
  return { name: f.port.name, shape: f.shape(), datatype: f.port.datatype, data };
}

async function send(event) {
  event.preventDefault();
  $('problem').textContent = '';
  try {
    const request = packed(form.inputs.map(parse));
    const at = performance.now();
    const answer = await get('v2/models/' + encodeURIComponent(form.model) + '/infer', { method: 'POST', ...request });
    showAnswer(answer, performance.now() - at);
  } catch (e) {
    $('problem').textContent = e.message;
  }
}

// ---- the answer

function showAnswer(answer, ms) {
  const parts = [el('p', { class: 'soft' }, 'version ' + brief(answer.model_version ?? '–') + ', round trip ' + time(ms * 1000))];
  for (const o of answer.outputs) {
    parts.push(el('h3', {}, o.name + ' ', el('span', { class: 'soft' }, o.datatype + ' ' + o.shape.join(' × '))));
    parts.push(...picture(o));
  }
  const text = JSON.stringify(answer, null, 1);
  parts.push(el('details', {}, el('summary', {}, 'The answer as JSON'), el('pre', {}, text.length > 20000 ? text.slice(0, 20000) + ' …' : text)));
  $('answer').replaceChildren(...parts);
}

function picture(o) {
  if (o.datatype === 'BYTES') return [el('pre', {}, o.data.flat(Infinity).slice(0, 64).join('\n'))];
  const values = o.data.flat(Infinity).map(Number);
  if (values.length === 1) return [el('p', { class: 'whole' }, short(values[0]))];
  const width = o.shape[o.shape.length - 1];
  if (width === 1 || width > 64) {
    if (values.length <= 64) return [barsOf(values, o.name)];
    const finite = values.filter(Number.isFinite);
    const sum = finite.reduce((a, b) => a + b, 0);
    return [el('p', {}, `${count(values.length)} values from ${short(finite.reduce((a, b) => Math.min(a, b), Infinity))} to ${short(finite.reduce((a, b) => Math.max(a, b), -Infinity))}, mean ${short(sum / finite.length)}`)];
  }
  const drawn = [], rows = values.length / width, most = Math.min(rows, 16);
  for (let r = 0; r < most; r++) drawn.push(barsOf(values.slice(r * width, (r + 1) * width), o.name));
  if (rows > most) drawn.push(el('p', { class: 'soft' }, `and ${count(rows - most)} more rows`));
  return drawn;
}

// barsOf draws the values of one row; logarithms of probabilities are shown as probabilities.
function barsOf(values, name) {
  const logs = /log_?prob/i.test(name) && values.every((v) => v <= 1e-4);
  const shown = logs ? values.map(Math.exp) : values;
  const best = /^actions?$/.test(name) ? -1 : shown.indexOf(Math.max(...shown));
  return bars(shown.map((v, i) => ({ name: i, value: v, chosen: i === best })), { format: logs ? percent : short, most: logs ? 1 : 0 });
}

$('request').addEventListener('submit', send);
for (const how of ['sample', 'random', 'zeros']) $('fill-' + how).addEventListener('click', () => enter(how));
addEventListener('hashchange', () => (wanted = decodeURIComponent(location.hash.slice(1))));
poll();
