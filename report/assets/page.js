'use strict';
// Draws the figures of a page of blktape. What is drawn is in the element #data: tables of columns, and for
// each figure how its table is drawn (report/page.h). Nothing is computed here but positions and texts.
(() => {
const root = document.documentElement;
root.classList.add('js');
const data = JSON.parse(document.getElementById('data').textContent);
const clock = data.clock_ns === null ? null : data.clock_ns / 1e6;

// ---- how values are written: as base/quantity.h does ----
const digits = v => {
  const a = Math.abs(v);
  if (a >= 100) return Math.round(v).toLocaleString('en');
  return String(+v.toPrecision(3));
};
const step = (v, units, base) => {
  let i = 0;
  while (Math.abs(v) >= base && i + 1 < units.length) { v /= base; i++; }
  return digits(v) + ' ' + units[i];
};
const bytes = v => step(v, ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'], 1024);
const duration = v => {
  const a = Math.abs(v);
  if (a === 0) return '0';
  if (a < 1e3) return digits(v) + ' ns';
  if (a < 1e6) return digits(v / 1e3) + ' us';
  if (a < 1e9) return digits(v / 1e6) + ' ms';
  if (a < 120e9) return digits(v / 1e9) + ' s';
  const s = Math.round(v / 1e9), two = n => String(n).padStart(2, '0');
  if (s < 7200) return Math.floor(s / 60) + ' min' + (s % 60 ? ' ' + two(s % 60) + ' s' : '');
  return Math.floor(s / 3600) + ' h' + (s % 3600 >= 60 ? ' ' + two(Math.floor(s / 60) % 60) + ' min' : '');
};
const timeOfDay = (v, span) => {
  const ms = ((Math.round(clock + v / 1e6) % 864e5) + 864e5) % 864e5, two = n => String(n).padStart(2, '0');
  const text = two(Math.floor(ms / 36e5)) + ':' + two(Math.floor(ms / 6e4) % 60);
  if (span > 6 * 3600e9) return text;
  const s = text + ':' + two(Math.floor(ms / 1e3) % 60);
  return span > 20e9 ? s : s + '.' + String(ms % 1000).padStart(3, '0');
};
const write = (v, unit, span) => {
  if (v === null || v === undefined) return 'not known';
  if (typeof v === 'string') return v;
  switch (unit) {
    case 'bytes': return bytes(v);
    case 'duration': return duration(v);
    case 'time': return clock === null ? duration(v) : timeOfDay(v, span === undefined ? 0 : span);
    case 'share': return digits(100 * v) + ' %';
    case 'per_second': return digits(v) + ' /s';
    case 'bytes_per_second': return bytes(v) + '/s';
    case 'celsius': return digits(v) + ' °C';
    case 'one_in': return 'p' + +(100 - 100 / Math.max(1, v)).toPrecision(6);
    default: return digits(v);
  }
};
const short = (text, most) => { const c = Array.from(text); return c.length > most ? c.slice(0, most - 1).join('') + '…' : text; };
// Names of drives differ at their ends as often as at their beginnings.
const inner = (text, most) => { const c = Array.from(text), head = Math.ceil((most - 1) / 2); return c.length > most ? c.slice(0, head).join('') + '…' + c.slice(c.length - (most - 1 - head)).join('') : text; };
// Ticks at round numbers of the unit: a nice interval for a span.
const niceStep = (span, unit, ticks) => {
  const rough = span / ticks;
  if (unit === 'bytes' || unit === 'bytes_per_second') return Math.pow(2, Math.ceil(Math.log2(rough || 1)));
  if (unit === 'time' || unit === 'duration') {
    if (rough > 1e9) {
      for (const s of [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200]) if (s * 1e9 >= rough) return s * 1e9;
      return Math.ceil(rough / 864e11) * 864e11;
    }
  }
  const power = Math.pow(10, Math.floor(Math.log10(rough || 1)));
  for (const times of [1, 2, 5, 10]) if (times * power >= rough) return times * power;
  return 10 * power;
};

// ---- looks ----
let print = false;
const css = name => getComputedStyle(root).getPropertyValue(name).trim();
const paper = {bg: '#fff', fg: '#000', mut: '#444', line: '#bbb', c: ['#0072b2', '#d55e00', '#009e73', '#b0579a', '#8a6d00', '#57606a'], dark: false};
const look = () => print ? paper : {
  bg: css('--card'), fg: css('--fg'), mut: css('--mut'), line: css('--line'),
  c: [0, 1, 2, 3, 4, 5].map(i => css('--c' + i)), dark: matchMedia('(prefers-color-scheme: dark)').matches};
const rgb = hex => [1, 3, 5].map(i => parseInt(hex.slice(i, i + 2), 16));
const full = hex => hex.length === 4 ? '#' + hex.slice(1).split('').map(c => c + c).join('') : hex;
const mix = (a, b, t) => { const x = rgb(full(a)), y = rgb(full(b)); return 'rgb(' + x.map((v, i) => Math.round(v + (y[i] - v) * t)).join(',') + ')'; };
const font = 'system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif';

const columnsOf = (id, rows) => Object.fromEntries(data.tables[id].columns.map(c => [c.key, rows ? Object.assign({}, c, {values: c.values.slice(0, rows)}) : c]));
const axisLook = (l, extra) => Object.assign({
  axisLabel: Object.assign({color: l.mut, fontSize: 11.5, hideOverlap: true}, extra && extra.axisLabel),
  axisLine: {show: true, lineStyle: {color: l.line}}, axisTick: {show: false},
  splitLine: {show: true, lineStyle: {color: l.line, opacity: 0.7}}, nameTextStyle: {color: l.mut, fontSize: 11.5}},
  Object.fromEntries(Object.entries(extra || {}).filter(([k]) => k !== 'axisLabel')));
const valueAxis = (axis, l, low, high, extra) => {
  const made = axisLook(l, Object.assign({name: axis.label, nameLocation: 'end', nameGap: 14,
    axisLabel: {formatter: v => write(v, axis.unit)}}, extra));
  made.nameTextStyle = {color: l.mut, fontSize: 11.5, align: 'left', padding: [0, 0, 0, -64]};
  if (axis.log && axis.close && low > 0) {
    // Ratios: half and double are as far from 1.
    made.type = 'log';
    made.logBase = 2;
    made.min = Math.pow(2, Math.floor(Math.log2(low) + 1e-9));
    made.max = Math.pow(2, Math.ceil(Math.log2(Math.max(high, low * 1.01)) - 1e-9));
  } else if (axis.close && high > 0) {
    made.type = 'value';
    const each = niceStep(Math.max(high - low, high * 1e-3), axis.unit, 4);
    made.min = Math.floor(low / each + 1e-9) * each;
    made.max = Math.max(made.min + each, Math.ceil(high / each - 1e-9) * each);
    made.interval = each;
  } else if (axis.log) {
    made.type = 'log';
    if (low > 0) { made.min = Math.pow(10, Math.floor(Math.log10(low))); made.max = Math.pow(10, Math.ceil(Math.log10(Math.max(high, low * 1.01)))); }
  } else {
    made.type = 'value';
    made.min = 0;
    const top = axis.unit === 'share' && high > 0.6 ? 1 : high > 0 ? high : 1;
    const each = niceStep(top, axis.unit, 4);
    made.max = Math.max(each, Math.ceil(top / each - 1e-9) * each);
    made.interval = each;
  }
  return made;
};
const known = values => values.filter(v => typeof v === 'number');
const rangeOf = (columns, names) => {
  let low = Infinity, high = 0;
  for (const name of names) for (const v of known(columns[name].values)) { if (v > 0 && v < low) low = v; if (v > high) high = v; }
  return [low === Infinity ? 0 : low, high];
};
const tooltip = (l, extra) => Object.assign({confine: true, renderMode: 'richText', transitionDuration: 0, backgroundColor: l.bg, borderColor: l.line,
  textStyle: {color: l.fg, fontSize: 12, fontFamily: font}}, extra);
const base = l => ({animation: false, textStyle: {fontFamily: font, color: l.fg}, backgroundColor: 'transparent'});

// ---- legends are HTML: they wrap, scale and are read ----
const legendOf = (figure, items) => {
  const box = document.getElementById('legend-' + figure.id);
  box.hidden = items.length === 0;
  box.replaceChildren(...items.map(([node, text]) => { const span = document.createElement('span'); span.append(node, text); return span; }));
};
const swatch = colour => { const i = document.createElement('i'); i.style.background = colour; return i; };
const dashes = {dashed: [7, 4], dotted: [2, 3], dashdot: [9, 3, 2, 3]};
const symbols = ['circle', 'rect', 'triangle', 'diamond', 'emptyCircle', 'emptyRect', 'emptyTriangle', 'emptyDiamond'];
const colourOf = (l, i) => l.c[i % l.c.length];
const mark = (ns, colour, symbol) => {
  const shape = document.createElementNS(ns, 'path'), hollow = symbol >= 4;
  const outlines = ['M9 5a4 4 0 1 0 8 0a4 4 0 1 0 -8 0', 'M9.5 1.5h7v7h-7z', 'M13 .5l4.5 8h-9z', 'M13 0l4.5 5l-4.5 5l-4.5 -5z'];
  for (const [k, v] of [['d', outlines[symbol % 4]], ['fill', hollow ? 'var(--card)' : colour], ['stroke', colour], ['stroke-width', hollow ? 1.8 : 0]]) shape.setAttribute(k, v);
  return shape;
};
const stroke = (colour, style, symbol) => {
  const ns = 'http://www.w3.org/2000/svg', svg = document.createElementNS(ns, 'svg');
  svg.setAttribute('width', 26); svg.setAttribute('height', 10); svg.setAttribute('aria-hidden', 'true');
  if (style === 'points') {
    const dot = document.createElementNS(ns, 'circle');
    for (const [k, v] of [['cx', 13], ['cy', 5], ['r', 3], ['fill', colour]]) dot.setAttribute(k, v);
    svg.append(dot);
  } else {
    const line = document.createElementNS(ns, 'path');
    for (const [k, v] of [['d', 'M0 5H26'], ['stroke', colour], ['stroke-width', 2.5], ['stroke-dasharray', dashes[style] ? dashes[style].join(' ') : 'none']]) line.setAttribute(k, v);
    svg.append(line);
    if (symbol !== undefined) svg.append(mark(ns, colour, symbol));
  }
  return svg;
};

// ---- bars ----
const maxBar = 34;
// `of` bars stand side by side, this is the `index`th; 0: points over a number.
const interval = (at, l, horizontal, index, of) => ({
  type: 'custom', z: 5, silent: true, data: at, clip: true,
  renderItem: (params, api) => {
    const a = api.coord(horizontal ? [api.value(1), api.value(0)] : [api.value(0), api.value(1)]);
    const b = api.coord(horizontal ? [api.value(2), api.value(0)] : [api.value(0), api.value(2)]);
    if (of) {
      const bar = api.barLayout({barMaxWidth: maxBar, barGap: '8%', barCategoryGap: '28%', count: of})[index];
      const at = horizontal ? 1 : 0;
      a[at] += bar.offsetCenter;
      b[at] += bar.offsetCenter;
    }
    const d = horizontal ? `M${a[0]} ${a[1]}H${b[0]}M${a[0]} ${a[1] - 7}v14M${b[0]} ${b[1] - 7}v14` : `M${a[0]} ${a[1]}V${b[1]}M${a[0] - 7} ${a[1]}h14M${b[0] - 7} ${b[1]}h14`;
    return {type: 'path', shape: {pathData: d}, style: {stroke: l.fg, lineWidth: 2, fill: 'none'}};
  }});
const bars = (figure, columns, l, width) => {
  const chart = figure.chart, names = chart.series.map(s => s.column), x = columns[chart.x];
  let [low, high] = rangeOf(columns, names.concat(chart.series.flatMap(s => s.high ? [s.high] : [])));
  let bad = [];
  for (const m of chart.marks || []) high = Math.max(high, m.to);
  if (chart.values) high *= chart.note ? 1.5 : 1.2;  // so that its words have room
  if (chart.stacked) high = Math.max(0, ...x.values.map((_, i) => names.reduce((sum, n) => sum + (columns[n].values[i] || 0), 0)));
  const label = v => chart.horizontal ? inner(write(v, x.unit), width > 700 ? 44 : 24) : short(write(v, x.unit), 14);
  const category = axisLook(l, {type: 'category', data: x.values.map((_, i) => String(i)), inverse: chart.horizontal,
    axisLabel: {formatter: i => label(x.values[+i]), color: l.fg, interval: 0, hideOverlap: !chart.horizontal, rotate: 0}, splitLine: {show: false}});
  if (!chart.horizontal) { category.name = ''; }
  const value = valueAxis(Object.assign({}, chart.panels[0]), l, low, high);
  if (chart.valid) bad = columns[chart.valid].values.map(v => v === 'no');
  if (chart.horizontal) { value.nameLocation = 'middle'; value.nameGap = 26; value.nameTextStyle = {color: l.mut, fontSize: 11.5}; value.splitNumber = 4; }
  const hatch = {symbol: 'rect', dashArrayX: [1, 0], dashArrayY: [2, 5], rotation: -Math.PI / 4, color: l.bg};
  // Beyond the palette's end a colour comes again, with dots.
  const dots = {symbol: 'circle', symbolSize: .5, dashArrayX: [[6, 6], [0, 6, 6, 0]], dashArrayY: [6, 0], color: l.bg};
  const colours = chart.row_colours || x.values.map((_, i) => i);
  const rowLook = i => bad[i] ? {color: l.mut, opacity: .55, decal: hatch} : {color: colourOf(l, colours[i]), decal: colours[i] >= l.c.length ? dots : undefined};
  const note = i => chart.note && columns[chart.note].values[i] ? ', ' + columns[chart.note].values[i] : '';
  // What a bar says stands beyond its interval.
  const words = (s, at) => ({type: 'custom', z: 6, silent: true, clip: false, data: at, renderItem: (params, api) => {
    const [px, py] = api.coord([api.value(1), api.value(0)]), i = api.value(0), c = columns[s.column];
    return {type: 'text', style: {text: write(c.values[i], c.unit) + note(i), x: px + 5, y: py, fill: bad[i] ? l.mut : l.fg, verticalAlign: 'middle', font: '600 12px ' + font, backgroundColor: l.bg, padding: [4, 3]}};
  }});
  const decals = [null, {symbol: 'rect', dashArrayX: [1, 0], dashArrayY: [2, 4], rotation: -Math.PI / 4, color: 'rgba(255,255,255,.55)'}];
  const option = Object.assign(base(l), {
    grid: chart.horizontal ? {left: 8, right: 24, top: (chart.marks || []).length ? 20 : 6, bottom: 26, containLabel: true} : {outerBoundsMode: 'none', left: 76, right: 12, top: 30, bottom: 24},
    tooltip: tooltip(l, {trigger: 'axis', axisPointer: {type: 'shadow'}, formatter: rows => {
      const i = +rows[0].axisValue;
      return [short(write(x.values[i], x.unit), 40)].concat(names.map(n => columns[n].label + ': ' + write(columns[n].values[i], columns[n].unit))).join('\n'); }}),
    series: chart.series.map((s, k) => ({type: 'bar', name: columns[s.column].label, stack: chart.stacked ? 'all' : undefined, barMaxWidth: maxBar, barGap: '8%',
      barCategoryGap: '28%', data: columns[s.column].values.map((v, i) => v === null ? '-' : chart.colour_by_row ? {value: v, itemStyle: rowLook(i)} : v),
      markLine: k === 0 && chart.horizontal && chart.marks ? {silent: true, symbol: 'none', animation: false, lineStyle: {color: l.fg, type: 'dashed', width: 1.2},
        label: {show: true, position: 'start', rotate: 0, formatter: p => chart.marks[p.dataIndex] ? chart.marks[p.dataIndex].what : '', color: l.mut, fontSize: 11, distance: 2}, data: chart.marks.map(m => ({xAxis: m.from}))} : undefined,
      itemStyle: {color: colourOf(l, s.colour), borderRadius: 1, decal: print && chart.series.length > 1 ? decals[k % 2] || undefined : undefined}}))
      .concat(chart.series.flatMap((s, k) => s.low ? [interval(columns[s.low].values.map((v, i) => [i, v, columns[s.high].values[i]])
        .filter(d => d[1] !== null && d[2] !== null), l, chart.horizontal, k, chart.stacked ? 1 : chart.series.length)] : []))
      .concat(chart.values && chart.horizontal ? [words(chart.series[0], columns[names[0]].values.map((v, i) => [i, Math.max(v || 0, chart.series[0].high && columns[chart.series[0].high].values[i] || 0)]))] : [])});
  option[chart.horizontal ? 'yAxis' : 'xAxis'] = category;
  option[chart.horizontal ? 'xAxis' : 'yAxis'] = value;
  legendOf(figure, names.length > 1 ? chart.series.map(s => [swatch(colourOf(l, s.colour)), s.label || columns[s.column].label]) : []);
  return option;
};

// ---- lines ----
const sliderOf = (l, indexes, span, unit) => [
  {type: 'slider', xAxisIndex: indexes, filterMode: 'none', height: 22, bottom: 6, left: 76, right: 30, showDetail: true, brushSelect: false, borderColor: l.line,
    fillerColor: mix(l.c[0], l.bg, 0.8).replace('rgb', 'rgba').replace(')', ',.5)'), handleStyle: {color: l.bg, borderColor: l.mut}, moveHandleSize: 0,
    dataBackground: {lineStyle: {opacity: 0}, areaStyle: {opacity: 0}}, selectedDataBackground: {lineStyle: {opacity: 0}, areaStyle: {opacity: 0}},
    textStyle: {color: l.mut, fontSize: 11}, labelFormatter: v => write(v, unit, span)},
  {type: 'inside', xAxisIndex: indexes, filterMode: 'none', zoomOnMouseWheel: 'ctrl', moveOnMouseMove: true, moveOnMouseWheel: false}];
const lines = (figure, columns, l, width) => {
  const chart = figure.chart, x = columns[chart.x], xs = x.values, xUnit = chart.x_axis.unit;
  // What a series is drawn from: its rows, and where its last step ends.
  const cuts = chart.series.map(s => {
    const from = s.first_row || 0, to = s.end_row || xs.length, at = xs.slice(from, to), last = at.length ? at[at.length - 1] : 1;
    const spans = chart.zoom || s.step;
    return {from, at, spans, end: !spans ? last : chart.x_end || last + (at.length > 1 ? at[1] - at[0] : 1)};
  });
  const first = Math.min(...cuts.map(c => c.at.length ? c.at[0] : 0)), end = Math.max(...cuts.map(c => c.end)), span = end - first;
  const h = chart.height, xAxis = [], yAxis = [], grid = [], series = [], count = chart.panels.length;
  chart.panels.forEach((panel, p) => {
    const of = chart.series.filter(s => s.panel === p);
    const [low, high] = rangeOf(columns, of.map(s => s.column).concat(of.flatMap(s => s.high ? [s.high] : [])));
    grid.push({outerBoundsMode: 'none', left: 76, right: 30, top: p * h + 30, height: h - 30 - (p + 1 < count ? 10 : chart.x_axis.label ? 42 : 24)});
    const axis = axisLook(l, {gridIndex: p, axisLabel: {show: p + 1 === count, formatter: v => write(v, xUnit, span)}});
    if (chart.x_axis.log) {
      const [a, b] = rangeOf(columns, [chart.x]);
      if (xUnit === 'one_in') Object.assign(axis, {type: 'log', min: a || 1, max: Math.pow(10, Math.ceil(Math.log10(Math.max(b, 10)) - 1e-9))});
      else if (xUnit === 'count' || xUnit === 'bytes') Object.assign(axis, {type: 'log', logBase: 2, min: a || 1, max: Math.max(b, 2)});
      else Object.assign(axis, {type: 'log', min: Math.pow(10, Math.floor(Math.log10(a || 1))), max: Math.pow(10, Math.ceil(Math.log10(Math.max(b, 10))))});
    } else {
      Object.assign(axis, {type: 'value', min: first, max: end});
      axis.splitLine.show = false;
      axis.interval = niceStep(span, xUnit, Math.max(2, width / 130));
      axis.axisLabel.showMaxLabel = false;
    }
    if (p + 1 === count && chart.x_axis.label) Object.assign(axis, {name: chart.x_axis.label, nameLocation: 'middle', nameGap: 24});
    xAxis.push(axis);
    yAxis.push(valueAxis(panel, l, low, high, {gridIndex: p}));
  });
  chart.series.forEach((s, k) => {
    const c = columns[s.column], colour = colourOf(l, s.colour), log = chart.panels[s.panel].log, cut = cuts[k];
    const at = cut.at.map((t, i) => { const v = c.values[cut.from + i]; return [t, v === null || (log && v <= 0) ? null : v]; });
    const alone = i => at[i] && at[i][1] !== null && (i === 0 || at[i - 1][1] === null) && (i + 1 >= at.length || at[i + 1][1] === null);
    const count = at.length;
    if (cut.spans && at.length) at.push([cut.end, at[at.length - 1][1]]);
    if (s.style === 'points') {
      series.push({type: 'line', name: c.label, xAxisIndex: s.panel, yAxisIndex: s.panel, data: at.filter(d => d[1] !== null), showSymbol: true, symbolSize: s.symbol >= 0 ? 7 : 3.5,
        symbol: symbols[s.symbol] || 'circle', lineStyle: {width: 0, opacity: 0}, itemStyle: {color: colour, opacity: s.symbol >= 0 ? 1 : 0.75}, showAllSymbol: true, z: 1});
      return;
    }
    const area = s.style === 'area';
    series.push({type: 'line', name: c.label, xAxisIndex: s.panel, yAxisIndex: s.panel, data: at, connectNulls: false, step: area || s.step || s.style === 'step' ? 'end' : false,
      showSymbol: s.symbol >= 0 && (count <= 40 || at.some((_, i) => alone(i))), showAllSymbol: true, symbol: symbols[s.symbol] || 'circle',
      symbolSize: (v, p) => s.symbol >= 0 && count <= 40 && p.dataIndex < count ? 7 : alone(p.dataIndex) ? 4 : 0,
      lineStyle: {color: colour, width: area ? 1 : 1.8, type: dashes[s.style] || 'solid'},
      itemStyle: {color: colour}, areaStyle: area ? {color: colour, opacity: 0.28} : undefined, z: 2});
    if (s.low) series.push(Object.assign(interval(cut.at.map((t, i) => [t, columns[s.low].values[cut.from + i], columns[s.high].values[cut.from + i]]).filter(d => d[1] !== null), l, false, 0, 0), {xAxisIndex: s.panel, yAxisIndex: s.panel}));
  });
  if (chart.marks && series.length) {
    const moments = chart.marks.filter(m => m.to <= m.from), stretches = chart.marks.filter(m => m.to > m.from);
    chart.panels.forEach((_, p) => {
      const host = series.find(s => s.xAxisIndex === p);
      if (!host) return;
      host.markLine = {silent: true, symbol: 'none', label: {show: false}, lineStyle: {color: l.c[3], type: 'dashed'}, data: moments.map(m => ({xAxis: m.from}))};
      host.markArea = {silent: true, itemStyle: {color: l.c[3], opacity: 0.25}, data: stretches.map(m => [{xAxis: m.from}, {xAxis: m.to}])};
    });
  }
  // One subject in several panels is one line of the legend.
  const name = s => s.label || columns[s.column].label, named = new Set();
  const told = chart.series.filter(s => !s.label || (!named.has(s.label) && named.add(s.label)));
  const symbolOf = s => s.symbol >= 0 && cuts[chart.series.indexOf(s)].at.length <= 40 ? s.symbol : undefined;
  legendOf(figure, told.length > 1 || (chart.marks || []).length ? told.map(s => [s.style === 'area' ? swatch(colourOf(l, s.colour)) : stroke(colourOf(l, s.colour), s.style, symbolOf(s)), short(name(s), 60)])
    .concat((chart.marks || []).length ? [[stroke(l.c[3], 'dashed'), 'events (' + chart.marks.length + ')']] : []) : []);
  return Object.assign(base(l), {grid, xAxis, yAxis, series,
    axisPointer: {link: [{xAxisIndex: 'all'}], lineStyle: {color: l.mut}},
    tooltip: tooltip(l, {trigger: 'axis', formatter: rows => {
      const at = (Array.isArray(rows) ? rows[0] : rows).axisValue;
      const rowOf = cut => {
        let low = 0, high = cut.at.length - 1;
        while (low < high) { const m = (low + high + 1) >> 1; if (cut.at[m] <= at) low = m; else high = m - 1; }
        return low;
      };
      const many = chart.panels.length > 1 && chart.series.some(s => s.label);
      return [(chart.x_axis.label ? chart.x_axis.label + ': ' : '') + write(cuts.length ? cuts[0].at[rowOf(cuts[0])] : 0, xUnit, 0)].concat(chart.series.map((s, k) => {
        const c = columns[s.column];
        return short(name(s), 40) + (many ? ', ' + c.label : '') + ': ' + write(c.values[cuts[k].from + rowOf(cuts[k])], c.unit);
      })).join('\n'); }}),
    dataZoom: chart.zoom && !print ? sliderOf(l, chart.panels.map((_, p) => p), span, xUnit) : undefined});
};

// ---- maps ----
const map = (figure, columns, l, width) => {
  const chart = figure.chart, x = columns[chart.x].values, y = columns[chart.y].values, yTo = columns[chart.y_to].values, v = columns[chart.value].values;
  const axis = chart.panels[0], colour = l.c[(chart.series[0] || {colour: 0}).colour], xUnit = chart.x_axis.unit;
  const rows = [];
  let most = 0, xMax = 0;
  x.forEach((at, i) => { if (v[i] > 0) rows.push([at, y[i], yTo[i], v[i], i]); if (v[i] > most) most = v[i]; xMax = Math.max(xMax, at + chart.x_step); });
  const low = Math.min(...rows.map(r => r[1]).filter(n => n > 0)), high = Math.max(1, ...rows.map(r => r[2]));
  const shade = n => mix(l.bg, colour, most <= 1 ? 1 : 0.22 + 0.78 * Math.log(n) / Math.log(most));
  const yAxis = valueAxis(axis, l, axis.log ? Math.max(1, low) : 0, high);
  if (axis.log) { yAxis.min = Math.max(1, Math.min(low, ...rows.map(r => Math.max(1, r[1])))); yAxis.max = high; yAxis.min = Math.pow(10, Math.floor(Math.log10(yAxis.min))); yAxis.max = Math.pow(10, Math.ceil(Math.log10(high))); }
  const xAxis = axisLook(l, {type: 'value', min: 0, max: xMax || 1, interval: niceStep(xMax || 1, xUnit, Math.max(2, width / 130)), axisLabel: {formatter: n => write(n, xUnit, xMax), showMaxLabel: false}, splitLine: {show: false}});
  const ramp = swatch('linear-gradient(90deg,' + shade(1) + ',' + shade(Math.max(1, most)) + ')');
  ramp.className = 'ramp';
  legendOf(figure, most > 0 ? [[ramp, most > 1 ? '1 to ' + digits(most) + ' I/Os, on a log scale' : '1 I/O']] : []);
  return Object.assign(base(l), {
    grid: {outerBoundsMode: 'none', left: 76, right: 30, top: 30, bottom: chart.zoom && !print ? 58 : 26}, xAxis, yAxis,
    tooltip: tooltip(l, {trigger: 'item', formatter: p => { const i = p.value[4];
      return 'from ' + write(x[i], xUnit, 0) + '\n' + write(y[i], axis.unit) + ' to ' + write(yTo[i], axis.unit) + '\n' + digits(v[i]) + (v[i] === 1 ? ' I/O' : ' I/Os'); }}),
    dataZoom: chart.zoom && !print ? sliderOf(l, [0], xMax, xUnit) : undefined,
    series: [{type: 'custom', data: rows, clip: true, encode: {x: 0, y: [1, 2]}, progressive: 0,
      renderItem: (params, api) => {
        const from = api.coord([api.value(0), axis.log ? Math.max(api.value(1), yAxis.min) : api.value(1)]), to = api.coord([api.value(0) + chart.x_step, api.value(2)]);
        const area = params.coordSys, left = Math.max(from[0], area.x), right = Math.min(to[0], area.x + area.width);
        if (right <= left) return;
        return {type: 'rect', shape: {x: left, y: to[1], width: Math.max(1, right - left + 0.3), height: Math.max(1, from[1] - to[1] + 0.3)}, style: {fill: shade(api.value(3))}};
      }}]});
};

// ---- all of them ----
const kinds = {bars, lines, map};
const live = [];
const draw = entry => {
  const figure = entry.figure, columns = columnsOf(figure.table, figure.chart.rows), l = look();
  entry.chart.setOption(kinds[figure.chart.kind](figure, columns, l, entry.box.clientWidth), true);
  const svg = entry.box.querySelector('svg');
  if (svg && !svg.getAttribute('viewBox')) svg.setAttribute('viewBox', '0 0 ' + entry.chart.getWidth() + ' ' + entry.chart.getHeight());
};
const fit = entry => {
  entry.chart.resize();
  draw(entry);
  const svg = entry.box.querySelector('svg');
  if (svg) svg.setAttribute('viewBox', '0 0 ' + entry.chart.getWidth() + ' ' + entry.chart.getHeight());
};
// Ticks stay round and as many, however far it is zoomed.
const ticks = entry => entry.chart.on('datazoom', () => {
  const option = entry.chart.getOption(), {start, end} = option.dataZoom[0], axis = entry.figure.chart.x_axis;
  const whole = option.xAxis[0].max - option.xAxis[0].min, span = Math.max(1, whole * (end - start) / 100);
  const interval = niceStep(span, axis.unit, Math.max(2, entry.box.clientWidth / 130));
  entry.chart.setOption({xAxis: option.xAxis.map((_, p) => ({interval, axisLabel: {formatter: v => write(v, axis.unit, span)}}))}, {lazyUpdate: true});
});
const keys = entry => entry.box.addEventListener('keydown', event => {
  const zoom = entry.chart.getOption().dataZoom[0];
  let {start, end} = zoom;
  const span = end - start, centre = (start + end) / 2;
  switch (event.key) {
    case 'ArrowLeft': start -= span / 5; end -= span / 5; break;
    case 'ArrowRight': start += span / 5; end += span / 5; break;
    case '+': case '=': start = centre - span / 4; end = centre + span / 4; break;
    case '-': start = centre - span; end = centre + span; break;
    case 'Home': case '0': start = 0; end = 100; break;
    default: return;
  }
  event.preventDefault();
  if (start < 0) { end = Math.min(100, end - start); start = 0; }
  if (end > 100) { start = Math.max(0, start - (end - 100)); end = 100; }
  entry.chart.dispatchAction({type: 'dataZoom', start, end});
});
const next = queue => {
  const figure = queue.shift();
  if (!figure) { root.dataset.drawn = String(live.length); return; }
  const box = document.getElementById('chart-' + figure.id);
  const entry = {figure, box, chart: echarts.init(box, null, {renderer: figure.chart.kind === 'map' ? 'canvas' : 'svg', devicePixelRatio: Math.max(2, devicePixelRatio)})};
  draw(entry);
  if (figure.chart.zoom) { keys(entry); ticks(entry); box.setAttribute('aria-keyshortcuts', 'ArrowLeft ArrowRight + - Home'); box.title = 'Drag, or ctrl and wheel, or the keys + - Left Right Home'; }
  box.dataset.drawn = '1';
  live.push(entry);
  setTimeout(next, 0, queue);
};
next(data.figures.slice());
let pending = 0;
const again = () => { cancelAnimationFrame(pending); pending = requestAnimationFrame(() => live.forEach(fit)); };
addEventListener('resize', again);
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', again);
addEventListener('beforeprint', () => { print = true; live.forEach(draw); });
addEventListener('afterprint', () => { print = false; live.forEach(draw); });
})();
