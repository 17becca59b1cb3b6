// Scores of the folds, or a criterion, against alpha.

function drawChoice(choice) {
  const { alphas, values, errors, folds, band } = choice;
  const known = values.map((_, i) => i).filter((i) => values[i] !== null);
  const error = (i) => (errors && errors[i] !== null ? errors[i] : 0);
  const ends = known.flatMap((i) => [values[i] - error(i), values[i] + error(i)]);
  const all = [...ends, ...folds.flat().filter((value) => value !== null), ...(band || [])];
  const [low, high] = [Math.min(...all), Math.max(...all)];
  const spare = 0.06 * (high - low) || 0.1 * Math.abs(high) || 1;

  /** A line through what is known of some numbers. */
  const through = (plot, numbers, indices) =>
    indices.map((i, k) => `${k ? 'L' : 'M'}${plot.x.at(alphas[i]).toFixed(1)},${plot.y(numbers(i)).toFixed(1)}`).join('');

  function drawCurves(plot) {
    const curves = draw(plot.svg, 'g', { class: 'curves' });
    if (band) {
      const [from, to] = [plot.x.at(plot.x.high), plot.x.at(plot.x.low)];
      const top = plot.y(band[1]);
      draw(curves, 'rect', { class: 'best', x: from, width: to - from, y: top, height: Math.max(plot.y(band[0]) - top, 1) });
    }
    if (errors) {
      const upper = through(plot, (i) => values[i] + error(i), known);
      const lower = through(plot, (i) => values[i] - error(i), [...known].reverse()).replace('M', 'L');
      draw(curves, 'path', { class: 'error', d: `${upper}${lower}Z` });
    }
    for (const scores of folds) {
      const indices = scores.map((_, i) => i).filter((i) => scores[i] !== null);
      draw(curves, 'path', { class: 'faint', d: through(plot, (i) => scores[i], indices) });
    }
    draw(curves, 'path', { class: 'mean', d: through(plot, (i) => values[i], known) });
    for (const i of known) draw(curves, 'circle', { class: 'dot', cx: plot.x.at(alphas[i]), cy: plot.y(values[i]), r: 1.8 });
  }

  function describe(plot, px) {
    const i = nearest(alphas, plot.alphaAt(px));
    const x = plot.x.at(alphas[i]);
    plot.guide.setAttribute('x1', x);
    plot.guide.setAttribute('x2', x);
    plot.guide.setAttribute('visibility', 'visible');
    const lines = [`${choice.label} ${number(values[i])}`];
    if (errors && errors[i] !== null) lines[0] += ` ± ${number(errors[i], 2)}`;
    lines.push(`alpha ${number(alphas[i])}`);
    if (choice.selected) lines.push(counted(choice.selected[i], 'feature'));
    return lines;
  }

  new Plot(byId('choice-plot'), {
    alphas,
    chosen: choice.chosen,
    selected: choice.selected,
    label: `${choice.label} (${choice.lowerIsBetter ? 'lower' : 'higher'} is better)`,
    low: low - spare,
    high: high + spare,
    drawCurves,
    describe,
  });
}
