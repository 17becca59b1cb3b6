// The path: lines of norms, or of the coefficients of one target, their legend, the slider, and what is selected where it stands.

const START = 0; // parts of a row: where it begins to be non-zero, its values from there, its clusters
const VALUES = 1;
const CLUSTERS = 2;
const REACH = 40; // pixels between the pointer and a line that it means
const MOST_NAMES = 200;

/** A value (or cluster) of a row at an alpha; 0 before it begins and after it ends. */
function at(row, part, i) {
  const k = i - row[START];
  return k >= 0 && k < row[part].length ? row[part][k] : 0;
}

/** The line of a row as an SVG path, with the zeros at both ends. */
function lineOf(plot, row, alphas) {
  const first = Math.max(row[START] - 1, 0);
  const last = Math.min(row[START] + row[VALUES].length, alphas.length - 1);
  const points = [];
  for (let i = first; i <= last; i++) points.push(`${plot.xs[i]},${plot.y(at(row, VALUES, i)).toFixed(1)}`);
  return `M${points.join('L')}`;
}

function drawPath(path) {
  const { alphas, rows } = path;
  const free = new Set(path.free);
  const named = new Map(path.legend.flatMap((lines, group) => lines.map((r) => [r, group])));
  const room = 0.06 * (path.high - path.low);

  function drawCurves(plot) {
    plot.xs = alphas.map((value) => plot.x.at(value).toFixed(1));
    if (path.low < 0) {
      draw(plot.svg, 'line', { class: 'base', x1: MARGIN.left, x2: plot.width - MARGIN.right, y1: plot.y(0), y2: plot.y(0) });
    }
    const curves = draw(plot.svg, 'g', { class: 'curves', style: plot.inside() }); // the axis is not made for all
    const others = rows.map((_, r) => r).filter((r) => !named.has(r));
    for (const [kind, members] of [['faint', others.filter((r) => !free.has(r))], ['faint free', others.filter((r) => free.has(r))]]) {
      // One element for many lines: thousands of elements would be slow.
      for (let k = 0; k < members.length; k += 250) {
        const d = members.slice(k, k + 250).map((r) => lineOf(plot, rows[r], alphas)).join('');
        draw(curves, 'path', { class: kind, d });
      }
    }
    for (const [r, group] of [...named].reverse()) {
      draw(curves, 'path', { class: `line line${group}${free.has(r) ? ' free' : ''}`, d: lineOf(plot, rows[r], alphas) });
    }
    if (alphas.length === 1) {
      for (const row of rows) draw(curves, 'circle', { class: 'dot', cx: plot.xs[0], cy: plot.y(at(row, VALUES, 0)), r: 3 });
    }
    if (rows.length === 0) {
      const middle = { class: 'empty', x: plot.width / 2, y: plot.height / 2, 'text-anchor': 'middle' };
      draw(plot.svg, 'text', middle, 'No feature is selected at any alpha.');
    }
  }

  /** The row whose line is nearest to the pointer, or -1. */
  function pick(plot, px, py) {
    let i = 0;
    while (i < alphas.length - 2 && Number(plot.xs[i + 1]) < px) i++;
    const next = Math.min(i + 1, alphas.length - 1);
    const width = plot.xs[next] - plot.xs[i];
    const share = width > 0 ? Math.min(Math.max((px - plot.xs[i]) / width, 0), 1) : 0;
    let best = -1;
    let distance = REACH;
    rows.forEach((row, r) => {
      const [before, after] = [at(row, VALUES, i), at(row, VALUES, next)];
      if (before === 0 && after === 0) return;
      const away = Math.abs(plot.y((1 - share) * before + share * after) - py);
      if (away < distance) [best, distance] = [r, away];
    });
    return best;
  }

  function describe(plot, px, py) {
    const r = pick(plot, px, py);
    if (r < 0) return null;
    const i = nearest(alphas, plot.alphaAt(px));
    const cluster = at(rows[r], CLUSTERS, i);
    const value = at(rows[r], VALUES, i);
    plot.highlight.setAttribute('d', lineOf(plot, rows[r], alphas));
    const lines = [path.names[r], `alpha ${number(alphas[i])}: ${path.what} ${number(value)}`];
    if (free.has(r)) lines.push('not penalized');
    if (cluster > 0) {
      const others = rows.map((_, k) => k).filter((k) => k !== r && at(rows[k], CLUSTERS, i) === cluster);
      const names = others.slice(0, 3).map((k) => path.names[k]).join(', ');
      const more = others.length > 3 ? ` and ${grouped(others.length - 3)} more` : '';
      lines.push(`cluster ${cluster}${others.length ? `, with ${names}${more}` : ''}`);
    }
    return lines;
  }

  const plot = new Plot(byId('path-plot'), {
    alphas,
    chosen: path.chosen,
    selected: path.selected,
    label: path.label,
    low: path.low < 0 ? path.low - room : 0,
    high: path.high > 0 ? path.high + room : 0,
    drawCurves,
    describe,
  });
  drawLegend(path, plot);
}

/** Names of the largest; pointing at one makes its lines stand out. */
function drawLegend(path, plot) {
  const list = byId('legend');
  path.legend.forEach((lines, group) => {
    const swatch = element('span', { className: `swatch line${group}` });
    const name = element('span', { className: 'name' }, path.labels[group]);
    const tied = lines.length > 1 ? ` + ${grouped(lines.length - 1)} tied` : '';
    const button = element('button', { type: 'button' }, swatch, name, tied);
    button.title = lines.slice(0, 20).map((r) => path.names[r]).join(', ');
    const show = () => plot.highlight.setAttribute('d', lines.map((r) => lineOf(plot, path.rows[r], path.alphas)).join(''));
    for (const event of ['pointerenter', 'focus', 'click']) button.addEventListener(event, show);
    for (const event of ['pointerleave', 'blur']) button.addEventListener(event, () => plot.leave());
    list.append(element('li', {}, button));
  });
  const rest = path.rows.length - path.legend.reduce((sum, lines) => sum + lines.length, 0);
  if (rest > 0 && path.legend.length) {
    const swatch = element('span', { className: 'swatch faint' });
    list.append(element('li', {}, element('span', { className: 'rest' }, swatch, `${counted(rest, 'other')}`)));
  }
}

/**
 * Rows that are in the model at an alpha, as [term, rows]: those not penalized, then by cluster; clusters of one row that
 * follow each other share an entry.
 */
function selectedAt(path, i) {
  const clusters = new Map();
  path.rows.forEach((row, r) => {
    if (at(row, VALUES, i) === 0) return;
    const cluster = at(row, CLUSTERS, i);
    if (!clusters.has(cluster)) clusters.set(cluster, []);
    clusters.get(cluster).push(r);
  });
  const entries = [];
  for (const [cluster, rows] of [...clusters].sort((one, other) => one[0] - other[0])) {
    const last = entries[entries.length - 1];
    if (last && cluster > 0 && rows.length === 1 && last.isRun) {
      last.rows.push(rows[0]);
      last.to = cluster;
    } else entries.push({ from: cluster, to: cluster, rows, isRun: cluster > 0 && rows.length === 1 });
  }
  return entries.map(({ from, to, rows }) => {
    if (from === 0) return ['Not penalized', rows];
    return [from === to ? `Cluster ${from}` : `Clusters ${from}–${to}`, rows];
  });
}

function startSlider(path) {
  const slider = byId('alpha');
  const value = byId('alpha-value');
  const reset = byId('alpha-reset');
  const inModel = new Set(data.table ? data.table.features : []);
  const isNew = (r) => path.chosen !== null && !inModel.has(path.features[r]);
  let isLong = false; // whether all names are shown

  slider.addEventListener('input', () => alpha.move(Number(slider.value)));
  reset.textContent = path.chosen === null ? 'smallest alpha' : 'chosen alpha';
  reset.addEventListener('click', () => alpha.move(path.start));

  /** Names with commas; those that the fitted model does not have are marked. */
  function namesOf(members, budget) {
    const shown = members.slice(0, Math.max(budget.left, 0));
    budget.left -= members.length;
    const parts = shown.flatMap((r, k) => [
      k ? ', ' : '',
      element('span', { className: isNew(r) ? 'name new' : 'name' }, path.names[r]),
    ]);
    if (shown.length < members.length) parts.push(`${shown.length ? ' and ' : ''}${grouped(members.length - shown.length)} more`);
    return parts;
  }

  function list(i) {
    const found = selectedAt(path, i);
    const rows = found.flatMap(([, members]) => members);
    const budget = { left: isLong ? Infinity : MOST_NAMES };
    const parts = [];
    if (found.length) {
      const entries = found.flatMap(([term, members]) =>
        budget.left > 0 ? [element('dt', {}, term), element('dd', {}, ...namesOf(members, budget))] : []);
      parts.push(element('dl', {}, ...entries));
    }
    if (rows.length > MOST_NAMES) {
      const button = element('button', { type: 'button' }, isLong ? 'Show fewer' : `Show all ${grouped(rows.length)}`);
      button.addEventListener('click', () => {
        isLong = !isLong;
        show(alpha.index);
      });
      parts.push(button);
    }
    if (path.omitted) parts.push(element('p', {}, `${counted(path.omitted, 'feature')} with smaller norms are not in this file.`));
    if (rows.some(isNew)) {
      parts.push(element('p', {}, element('span', { className: 'name new' }, 'Underlined'), ': not in the fitted model.'));
    }
    return parts;
  }

  function show(i) {
    slider.value = String(i);
    const nFree = path.free.length;
    const ties = path.tied[i] ? ` in ${counted(path.clusters[i], 'cluster')}` : path.selected[i] > 1 ? ', nothing is tied' : '';
    const words = path.selected[i] ? `${counted(path.selected[i], 'feature')}${ties}` : 'No feature selected';
    value.textContent = number(path.alphas[i]);
    slider.setAttribute('aria-valuetext', `alpha ${number(path.alphas[i])}, ${words}`);
    reset.disabled = i === path.start;
    const more = [
      nFree ? `${grouped(nFree)} not penalized` : '',
      path.deviance[i] === null ? '' : `${(100 * path.deviance[i]).toFixed(1)} % of the deviance explained`,
      `gap ${number(path.gaps[i], 2)}`,
      path.statuses[i] === 'converged' ? '' : 'short of its tolerance',
    ].filter(Boolean);
    const summary = element('p', { className: 'summary' }, element('strong', {}, words), ...more.flatMap((part) => [' · ', element('span', { className: 'figure' }, part)]));
    byId('at-alpha').replaceChildren(summary, ...list(i));
  }
  alpha.listen(oncePerFrame(show));
}
