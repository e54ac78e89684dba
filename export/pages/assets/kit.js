// What pages share: elements, numbers, asking with a token, the theme, and charts as SVG. Colours are classes of the style sheets, so that they follow the theme; every text is set as text.

const svgns = 'http://www.w3.org/2000/svg';

export const $ = (id) => document.getElementById(id);

export function el(tag, attrs, ...children) {
  const e = document.createElement(tag);
  for (const [k, v] of Object.entries(attrs ?? {})) {
    if (v === false || v === undefined || v === null) continue;
    if (k.startsWith('on')) e.addEventListener(k.slice(2), v);
    else e.setAttribute(k, v === true ? '' : v);
  }
  e.append(...children.filter((c) => c !== null && c !== undefined));
  return e;
}

// table makes a table; columns are [heading, function of a row, class].
export function table(rows, columns, empty) {
  if (rows.length === 0) return nothing(empty ?? 'none');
  return el('div', { class: 'wide tall', tabindex: 0 }, el('table', {}, el('thead', {}, el('tr', {}, ...columns.map(([h, , c]) => el('th', { class: c ?? false, scope: 'col' }, h)))), el('tbody', {}, ...rows.map((r) => el('tr', {}, ...columns.map(([, f, c]) => el('td', { class: c ?? false }, f(r) ?? '–')))))));
}

export const nothing = (text) => el('p', { class: 'soft empty' }, text);

// fill replaces what a box has; what was unfolded and scrolled in it stays so, and a chart keeps the keyboard.
export function fill(box, ...parts) {
  const open = new Set([...box.querySelectorAll('details[open] > summary')].map((x) => x.textContent));
  const tops = [...box.querySelectorAll('.tall')].map((x) => [x.scrollTop, x.scrollLeft]);
  const chart = box.querySelector('figure svg:focus')?.closest('figure').dataset.title;
  box.replaceChildren(...parts);
  for (const x of box.querySelectorAll('details > summary')) if (open.has(x.textContent)) x.parentNode.open = true;
  [...box.querySelectorAll('.tall')].forEach((x, i) => tops[i] && ([x.scrollTop, x.scrollLeft] = tops[i]));
  if (chart === undefined) return;
  const plot = [...box.querySelectorAll('figure')].find((x) => x.dataset.title === chart)?.querySelector('.plot');
  if (!plot) return;
  measured.get(plot)?.(Math.round(plot.clientWidth));
  plot.querySelector('svg')?.focus({ preventScroll: true });
}

// reading says whether somebody reads a chart of a box, which should not change meanwhile.
export const reading = (box) => box.querySelector('.tip:not([hidden])') !== null;

// ---- asking

export class Refused extends Error {}

let token = sessionStorage.getItem('onnxrl-token') ?? '';
let unlock = null;

// ask fetches with the token that the reader gave; while it is refused the form for one is shown.
export async function ask(url, options) {
  const r = await fetch(url, { cache: 'no-store', ...options, headers: { ...(token ? { Authorization: 'Bearer ' + token } : {}), ...options?.headers } });
  $('login').hidden = r.status !== 401;
  if (r.status === 401) throw new Refused('a token is needed');
  if (r.ok) return r;
  const doc = await r.json().catch(() => ({}));
  throw new Error(doc.error ?? `${r.status} ${r.statusText}`);
}

// get asks for a document of JSON.
export async function get(url, options) {
  const text = await (await ask(url, options)).text();
  try {
    return JSON.parse(text);
  } catch {
    throw new Error('the answer is not JSON: ' + text.slice(0, 200));
  }
}

// unlocked waits until the reader gives a token.
export const unlocked = () => new Promise((resolve) => (unlock = resolve));

$('login').addEventListener('submit', (e) => {
  e.preventDefault();
  token = $('token').value.trim();
  sessionStorage.setItem('onnxrl-token', token);
  $('token').value = '';
  unlock?.();
});

// ---- the theme

const root = document.documentElement;

// theme changes between light and dark.
export function theme() {
  const dark = root.dataset.theme ? root.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
  root.dataset.theme = dark ? 'light' : 'dark';
  localStorage.setItem('onnxrl-theme', root.dataset.theme);
}
if (localStorage.getItem('onnxrl-theme')) root.dataset.theme = localStorage.getItem('onnxrl-theme');
$('theme').addEventListener('click', theme);

function draw(parent, tag, attrs, text) {
  const e = document.createElementNS(svgns, tag);
  for (const [k, v] of Object.entries(attrs)) e.setAttribute(k, v);
  if (text !== undefined) e.textContent = text;
  parent.append(e);
  return e;
}

// ---- numbers

export const count = (n) => Math.round(n).toLocaleString('en-US');

// short has four significant digits.
export function short(x) {
  if (x === null || x === undefined || Number.isNaN(x)) return '–';
  if (!Number.isFinite(x)) return String(x);
  const a = Math.abs(x);
  if (Number.isInteger(x) && a < 1e6) return count(x).replace('-', '−');
  let text;
  if (a >= 1e9) text = (x / 1e9).toPrecision(4) + ' G';
  else if (a >= 1e6) text = (x / 1e6).toPrecision(4) + ' M';
  else if (a >= 1e3) text = count(x);
  else if (a < 1e-3) text = x.toExponential(2);
  else text = String(Number(x.toPrecision(4)));
  return text.replaceAll('-', '−');
}

export const percent = (x) => (x === null || x === undefined ? '–' : (x * 100).toFixed(1).replace('-', '−') + ' %');

export function bytes(n) {
  if (n === null || n === undefined) return '–';
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  let i = 0;
  while (n >= 1000 && i < units.length - 1) {
    n /= 1000;
    i++;
  }
  return (i === 0 ? n : n.toPrecision(3)) + ' ' + units[i];
}

// duration of seconds.
export const duration = (s) => (!s ? '–' : s < 90 ? `${Math.round(s)} s` : s < 5400 ? `${Math.round(s / 60)} min` : s < 172800 ? `${Math.round(s / 3600)} h` : `${Math.round(s / 86400)} d`);

// brief is a version; a digest is known by its first twelve digits.
export const brief = (version) => (version.startsWith('sha256:') ? version.slice(7, 19) : version);

// axis is a short form for ticks.
function axis(x) {
  const a = Math.abs(x);
  let text;
  if (x === 0) return '0';
  if (a >= 1e9) text = Number((x / 1e9).toPrecision(4)) + 'G';
  else if (a >= 1e6) text = Number((x / 1e6).toPrecision(4)) + 'M';
  else if (a >= 1e4) text = Number((x / 1e3).toPrecision(4)) + 'k';
  else if (a < 1e-3) text = Number(x.toPrecision(3)).toExponential();
  else text = String(Number(x.toPrecision(4)));
  return text.replaceAll('-', '−');
}

// ticks are round numbers from low to high, about n of them.
function ticks(low, high, n, whole) {
  const span = high - low;
  if (!(span > 0)) return [low];
  const raw = span / Math.max(1, n);
  const power = Math.pow(10, Math.floor(Math.log10(raw)));
  const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((s) => s >= raw && (!whole || Number.isInteger(s))) ?? Math.max(whole ? 1 : 0, 10 * power);
  const list = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) list.push(i * step);
  return list;
}

// powers are ticks of a logarithmic axis, of logarithms: powers of ten, and where there are few of them also twice and five times that.
function powers(low, high) {
  for (const factors of [[1], [1, 2, 5], [1, 1.5, 2, 3, 4, 5, 6, 8]]) {
    const list = [];
    for (let p = Math.floor(low); p <= high; p++) {
      for (const f of factors) {
        const t = p + Math.log10(f);
        if (t >= low && t <= high) list.push(t);
      }
    }
    const every = Math.ceil(list.length / 6);
    if (list.length > 2) return list.filter((_, i) => i % every === 0);
  }
  return ticks(low, high, 3);
}

// widthOf is about how wide a text is drawn.
const widthOf = (text) => 6.3 * String(text).length;

const measured = new WeakMap();
const resized = new ResizeObserver((entries) => {
  for (const e of entries) {
    const redraw = measured.get(e.target);
    if (!e.target.isConnected) resized.unobserve(e.target);
    const width = Math.round(e.contentRect.width);
    if (redraw && width > 0 && width !== redraw.width) redraw(width);
  }
});

// onWidth has a function draw into a box, again whenever its width changes.
function onWidth(box, f) {
  const redraw = (width) => {
    redraw.width = width;
    f(width);
  };
  measured.set(box, redraw);
  resized.observe(box);
  const width = Math.round(box.clientWidth);
  if (width > 0) redraw(width);
}

// framed is a figure below its title and note.
const framed = (o, ...parts) => el('figure', { 'data-title': o.title ?? '' }, o.title ? el('figcaption', {}, el('b', {}, o.title), o.note ? el('span', { class: 'soft' }, ' ' + o.note) : null) : null, ...parts);

// canvas is a new drawing in a box, in place of the one before.
function canvas(box, width, height, label) {
  const svg = document.createElementNS(svgns, 'svg');
  for (const [k, v] of Object.entries({ viewBox: `0 0 ${width} ${height}`, width, height, role: 'img', 'aria-label': label })) svg.setAttribute(k, v);
  box.querySelector('svg')?.remove();
  box.prepend(svg);
  return svg;
}

// legend lists the series with their newest values.
function legend(series, format) {
  const list = el('ul', { class: 'legend' });
  for (const s of series) {
    if (s.quiet) continue;
    const last = s.y[s.y.length - 1];
    list.append(el('li', { title: s.title ?? s.name }, el('span', { class: 'key ' + s.color + (s.dash ? ' dash' : '') }), el('span', { class: 'name' }, s.name), el('span', { class: 'last', 'data-value': last ?? '' }, format(last))));
  }
  return list;
}

// lines draws series against x: { name, color, x, y, low, high, dash, fill, title, quiet }. Options: title, x (a function that formats x), y (of y), stacked, zero, log, height, note.
export function lines(series, o = {}) {
  const formatY = o.y ?? short;
  const formatX = o.x ?? count;
  const box = el('div', { class: 'plot' });
  const figure = framed(o, box, legend(series, formatY));
  series = series.filter((s) => s.x.length > 0);
  if (series.length === 0) {
    box.append(nothing('nothing yet'));
    return figure;
  }
  if (o.stacked) stack(series);
  const log = o.log && series.every((s) => s.y.every((v) => v === null || v > 0));
  const at = (v) => (log ? Math.log10(v) : v);
  let low = Infinity;
  let high = -Infinity;
  let left = Infinity;
  let right = -Infinity;
  for (const s of series) {
    for (let i = 0; i < s.x.length; i++) {
      left = Math.min(left, s.x[i]);
      right = Math.max(right, s.x[i]);
      for (const v of [s.y[i], s.low?.[i], s.high?.[i]]) {
        if (v === null || v === undefined || !Number.isFinite(v) || (log && v <= 0)) continue;
        low = Math.min(low, at(v));
        high = Math.max(high, at(v));
      }
    }
  }
  if (!Number.isFinite(low)) [low, high] = [0, 1];
  if (o.zero || o.stacked) [low, high] = [Math.min(0, low), Math.max(0, high)];
  if (o.zero && low === high) high = 1;
  else if (low === high) [low, high] = [low - Math.abs(low || 1) * 0.1, high + Math.abs(high || 1) * 0.1];
  else if (!o.stacked) [low, high] = [low === 0 && o.zero ? 0 : low - (high - low) * 0.04, high === 0 && o.zero ? 0 : high + (high - low) * 0.04];
  const single = left === right;
  if (single) [left, right] = [left - 1, right + 1];
  const whole = series.every((s) => s.x.every(Number.isInteger));
  const height = o.height ?? 210;
  const describe = series.filter((s) => !s.quiet).map((s) => `${s.name} ${formatY(s.y[s.y.length - 1])}`).join(', ');
  onWidth(box, (width) => {
    const svg = canvas(box, width, height, `${o.title ?? ''}: ${describe}`);
    svg.setAttribute('tabindex', '0');
    const levels = (log ? powers(low, high) : ticks(low, high, 4)).map((t) => [t, o.tick ? o.tick(log ? 10 ** t : t) : axis(log ? 10 ** t : t)]);
    const pad = { left: 14 + Math.max(22, ...levels.map(([, text]) => widthOf(text))), right: 10, top: 8, bottom: 22 };
    const X = (x) => pad.left + ((x - left) / (right - left)) * (width - pad.left - pad.right);
    const Y = (v) => pad.top + (1 - (at(v) - low) / (high - low)) * (height - pad.top - pad.bottom);
    for (const [t, text] of levels) {
      const y = pad.top + (1 - (t - low) / (high - low)) * (height - pad.top - pad.bottom);
      draw(svg, 'line', { x1: pad.left, x2: width - pad.right, y1: y, y2: y, class: t === 0 && !log ? 'zero' : 'grid' });
      draw(svg, 'text', { x: pad.left - 6, y: y + 4, 'text-anchor': 'end' }, text);
    }
    let written = -Infinity;
    for (const t of single ? [left + 1] : ticks(left, right, Math.max(2, Math.floor(width / 130)), whole)) {
      const text = o.x ? formatX(t) : axis(t);
      if (!text || X(t) - written < 6.2 * text.length) continue;
      written = X(t) + 3.1 * text.length;
      const anchor = X(t) < pad.left + 24 ? 'start' : X(t) > width - 40 ? 'end' : 'middle';
      draw(svg, 'text', { x: X(t), y: height - 5, 'text-anchor': anchor }, text);
    }
    for (const s of series) {
      if (s.low && s.high) {
        let d = '';
        for (let i = 0; i < s.x.length; i++) d += `${i ? 'L' : 'M'}${X(s.x[i]).toFixed(1)} ${Y(s.high[i]).toFixed(1)}`;
        for (let i = s.x.length - 1; i >= 0; i--) d += `L${X(s.x[i]).toFixed(1)} ${Y(s.low[i]).toFixed(1)}`;
        draw(svg, 'path', { d: d + 'Z', class: `${o.stacked || s.fill ? 'area' : 'band'} ${s.color}` });
      }
      if (o.stacked) continue;
      let d = '';
      const has = (i) => Number.isFinite(s.y[i]);
      for (let i = 0; i < s.x.length; i++) {
        if (!has(i)) continue;
        d += `${has(i - 1) ? 'L' : 'M'}${X(s.x[i]).toFixed(1)} ${Y(s.y[i]).toFixed(1)}`;
        // A point between gaps is no line.
        if (!has(i - 1) && !has(i + 1)) draw(svg, 'circle', { cx: X(s.x[i]), cy: Y(s.y[i]), r: 3, class: `dot ${s.color}` });
      }
      draw(svg, 'path', { d, class: `line ${s.color}${s.dash ? ' dash' : ''}${s.quiet ? ' quiet' : ''}` });
    }
    hover(svg, box, series, { X, left, right, pad, width, height, formatX, formatY });
  });
  return figure;
}

// stack turns the values of series of equal x into areas on top of each other.
function stack(series) {
  const below = new Array(series[0].x.length).fill(0);
  for (const s of series) {
    s.low = below.slice();
    s.high = s.y.map((v, i) => below[i] + (v ?? 0));
    s.high.forEach((v, i) => (below[i] = v));
  }
}

// nearest is the place of the last x that is not beyond, by bisection.
function nearest(xs, x) {
  let a = 0;
  let b = xs.length - 1;
  while (a < b) {
    const m = (a + b + 1) >> 1;
    if (xs[m] <= x) a = m;
    else b = m - 1;
  }
  return a + 1 < xs.length && xs[a + 1] - x < x - xs[a] ? a + 1 : a;
}

// hover shows the numbers below the pointer, or where the arrow keys have led.
function hover(svg, box, series, p) {
  const mark = draw(svg, 'line', { class: 'mark', y1: p.pad.top, y2: p.height - p.pad.bottom, x1: -9, x2: -9 });
  let tip = box.querySelector('.tip');
  if (!tip) {
    tip = el('div', { class: 'tip', hidden: true });
    box.append(tip);
  }
  const longest = series.reduce((a, b) => (b.x.length > a.x.length ? b : a));
  let place = -1;
  const show = (x) => {
    place = nearest(longest.x, x);
    const at = longest.x[place];
    mark.setAttribute('x1', p.X(at));
    mark.setAttribute('x2', p.X(at));
    tip.replaceChildren(el('b', {}, p.formatX(at)));
    for (const s of series.slice(0, 12)) {
      const i = nearest(s.x, at);
      if (at < s.x[0] || at > s.x[s.x.length - 1]) continue;
      const range = s.low && s.high && !s.fill && s.high[i] > s.low[i] && !s.stacked ? `  ${p.formatY(s.low[i])} … ${p.formatY(s.high[i])}` : '';
      tip.append(el('div', {}, el('span', { class: 'key ' + s.color }), ` ${s.name}  `, el('b', {}, p.formatY(s.y[i])), range));
    }
    tip.hidden = false;
    const left = p.X(at);
    tip.style.left = left > p.width / 2 ? 'auto' : `${left + 12}px`;
    tip.style.right = left > p.width / 2 ? `${p.width - left + 12}px` : 'auto';
  };
  const hide = () => {
    tip.hidden = true;
    mark.setAttribute('x1', -9);
    mark.setAttribute('x2', -9);
  };
  svg.addEventListener('pointermove', (e) => {
    const r = svg.getBoundingClientRect();
    show(p.left + ((e.clientX - r.left - p.pad.left) / (p.width - p.pad.left - p.pad.right)) * (p.right - p.left));
  });
  svg.addEventListener('pointerleave', hide);
  svg.addEventListener('blur', hide);
  svg.addEventListener('keydown', (e) => {
    const by = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -Infinity, End: Infinity }[e.key];
    if (!by) return;
    e.preventDefault();
    const from = place < 0 ? longest.x.length - 1 : place;
    show(longest.x[Math.max(0, Math.min(longest.x.length - 1, from + by))]);
  });
}

// heat draws a matrix of numbers: rows[i][j], deeper colours for greater ones.
export function heat(rows, o) {
  const box = el('div', { class: 'plot' });
  const figure = framed(o, box);
  const all = rows.flat().filter((v) => v !== null && v !== undefined);
  if (all.length === 0) {
    box.append(nothing('not measured'));
    return figure;
  }
  const low = o.low ?? Math.min(...all);
  const high = o.high ?? Math.max(...all);
  const format = o.format ?? short;
  onWidth(box, (width) => {
    const n = rows[0].length;
    const left = 12 + Math.max(...o.rows.map(widthOf));
    const cell = Math.min(110, (width - left - 4) / n);
    const tall = Math.max(16, Math.min(30, cell));
    const height = rows.length * tall + 24;
    const svg = canvas(box, width, height, `${o.title}: from ${format(low)} to ${format(high)}`);
    rows.forEach((row, i) => {
      draw(svg, 'text', { x: left - 6, y: i * tall + tall / 2 + 4, 'text-anchor': 'end' }, o.rows[i]);
      row.forEach((v, j) => {
        const share = v === null || v === undefined ? 0 : high > low ? (v - low) / (high - low) : 0.5;
        const r = draw(svg, 'rect', { x: left + j * cell, y: i * tall, width: Math.max(1, cell - 1), height: tall - 1, class: v === null || v === undefined ? 'none' : 'heat', 'fill-opacity': v === null ? 1 : (0.06 + 0.94 * share).toFixed(3) });
        draw(r, 'title', {}, `${o.rows[i]}, ${o.columns[j]}: ${v === null ? '–' : format(v)}`);
        if (cell >= 40 && v !== null && v !== undefined) draw(svg, 'text', { x: left + j * cell + cell / 2, y: i * tall + tall / 2 + 4, 'text-anchor': 'middle', class: share > 0.5 ? 'inverse' : 'strong' }, format(v));
      });
    });
    const every = Math.ceil(26 / cell);
    o.columns.forEach((c, j) => {
      if (j % every === 0) draw(svg, 'text', { x: left + j * cell + cell / 2, y: height - 6, 'text-anchor': 'middle' }, c);
    });
  });
  return figure;
}

// bars lists { name, value, note, title, off, chosen, below } with bars from a common zero; those below it, or that say so, have another colour.
export function bars(list, o) {
  const values = list.map((b) => b.value).filter(Number.isFinite);
  const low = Math.min(0, ...values);
  const span = Math.max(o.most ?? 0, ...values, 0) - low || 1;
  const figure = framed(o);
  figure.classList.add('bars');
  for (const b of list) {
    const bar = el('span', { class: 'bar' + (b.below ?? b.value < 0 ? ' below' : '') + (b.chosen ? ' top' : '') });
    bar.style.marginLeft = `${(100 * (Math.min(b.value, 0) - low)) / span}%`;
    bar.style.width = `${(100 * Math.abs(b.value)) / span}%`;
    figure.append(el('div', { class: 'row' + (b.off ? ' off' : ''), title: b.title ?? b.name }, el('span', { class: 'name' }, b.name), el('span', { class: 'track' }, bar), el('span', { class: 'last', 'data-value': b.value }, b.note ?? (o.format ?? short)(b.value))));
  }
  if (list.length === 0) figure.append(nothing('none'));
  return figure;
}

// tree draws a population: generations from left to right, members from top to bottom, each joined with the one that it descends from.
export function tree(generations, o) {
  const box = el('div', { class: 'plot wide' });
  const figure = framed(o, box);
  const scores = generations.flat().map((m) => m.score).filter((v) => v !== null);
  const low = Math.min(...scores);
  const high = Math.max(...scores);
  onWidth(box, (width) => {
    const n = generations.length;
    const members = Math.max(...generations.map((g) => g.length));
    const left = 26 + widthOf(`member ${members - 1}`);
    const step = Math.max(14, Math.min(160, (width - left - 20) / Math.max(1, n - 1)));
    const tall = members > 24 ? 16 : 26;
    const full = Math.max(width, left + 20 + step * (n - 1));
    const height = members * tall + 26;
    const svg = canvas(box, full, height, `${o.title}: ${n} generations of ${members} members`);
    const X = (g) => left + g * step;
    const Y = (m) => m * tall + tall / 2 + 2;
    for (let m = 0; m < members; m++) draw(svg, 'text', { x: left - 16, y: Y(m) + 4, 'text-anchor': 'end' }, `member ${m}`);
    generations.forEach((list, g) => {
      for (const m of list) {
        if (g > 0 && m.parent >= 0) draw(svg, 'path', { d: `M${X(g - 1)} ${Y(m.parent)}C${X(g - 0.5)} ${Y(m.parent)} ${X(g - 0.5)} ${Y(m.member)} ${X(g)} ${Y(m.member)}`, class: m.parent === m.member ? 'kin' : 'kin other' });
      }
    });
    generations.forEach((list, g) => {
      const best = list.reduce((a, m) => (m.score !== null && (a === null || (o.minimize ? m.score < a : m.score > a)) ? m.score : a), null);
      for (const m of list) {
        const share = m.score === null ? 0 : high > low ? (o.minimize ? high - m.score : m.score - low) / (high - low) : 1;
        const r = Math.min(8, tall / 2 - 3, step / 2 - 1);
        const c = draw(svg, 'circle', { cx: X(g), cy: Y(m.member), r, class: 'member' + (best !== null && m.score === best ? ' best' : '') + (m.rolled_back ? ' back' : ''), 'fill-opacity': (0.08 + 0.92 * share).toFixed(3) });
        const values = Object.entries(m.values).map(([k, v]) => `\n${k} ${short(v)}`).join('');
        draw(c, 'title', {}, `generation ${g}, member ${m.member}: ${m.action}${m.parent >= 0 && m.parent !== m.member ? ` of ${m.parent}` : ''}\nscore ${short(m.score)}${values}${m.rolled_back ? `\nrolled back: ${m.rolled_back}` : ''}`);
      }
      const every = Math.ceil(24 / step);
      if (g % every === 0) draw(svg, 'text', { x: X(g), y: height - 5, 'text-anchor': 'middle' }, g);
    });
  });
  return figure;
}
