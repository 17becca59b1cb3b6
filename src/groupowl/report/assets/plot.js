// A plot against alpha: axes, marks, a tip that follows the pointer. The path and the choice of alpha both use it.

const MARGIN = { left: 54, right: 14, top: 40, bottom: 44 };
const NARROW = 600; // pixels

/** Round numbers for a logarithmic axis, as many as have room; `widthOf` says how many pixels a number takes. */
function logTicks(low, high, length, widthOf) {
  const ticks = (factors) => {
    const found = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++) {
      for (const factor of factors) {
        const tick = Number(`${factor}e${power}`);
        if (tick >= low && tick <= high) found.push(tick);
      }
    }
    return found;
  };
  const place = (tick) => (Math.log(tick) / Math.log(high / low)) * length;
  const apart = (one, other) => (widthOf(one) + widthOf(other)) / 2;
  const hasRoom = (found) => found.every((tick, i) => i === 0 || place(tick) - place(found[i - 1]) >= apart(tick, found[i - 1]));
  for (const factors of [[1, 2, 3, 4, 5, 6, 7, 8, 9], [1, 2, 5], [1, 3], [1]]) {
    const found = ticks(factors);
    if (hasRoom(found)) return found;
  }
  const powers = ticks([1]);
  const widest = Math.max(...powers.map(widthOf));
  const step = Math.ceil(powers.length / Math.max(Math.floor(length / widest), 1));
  return powers.filter((_, i) => i % step === 0);
}

/** Round numbers for a linear axis, about `wanted` of them. */
function linearTicks(low, high, wanted) {
  const rough = (high - low) / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough);
  const found = [];
  for (let k = Math.ceil(low / step); k * step <= high + 1e-9 * step; k++) found.push(Number((k * step).toPrecision(12)));
  return found;
}

/** Where alphas lie: large ones on the left. One alpha alone stands in the middle. */
function alphaScale(alphas, width) {
  let high = Math.max(...alphas);
  let low = Math.min(...alphas);
  if (high < 1.05 * low) [high, low] = [1.5 * high, low / 1.5];
  const length = width - MARGIN.left - MARGIN.right;
  const at = (value) => MARGIN.left + (Math.log(high / value) / Math.log(high / low)) * length;
  return { at, low, high, length };
}

/**
 * A plot in a figure. `spec` has alphas, chosen, selected (numbers of features along the top, or null), label, low and
 * high of the vertical axis, drawCurves(plot) and describe(plot, x, y), which returns the lines of the tip or null.
 */
class Plot {
  constructor(figure, spec) {
    this.figure = figure;
    this.svg = figure.querySelector('svg');
    this.tip = figure.querySelector('.tip');
    this.spec = spec;
    this.width = 0;
    const follow = oncePerFrame((x, y, isTouch) => this.point(x, y, isTouch));
    const located = (event) => {
      const box = this.svg.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    this.svg.addEventListener('pointermove', (event) => follow(...located(event)));
    this.svg.addEventListener('pointerleave', () => this.leave());
    this.svg.addEventListener('click', (event) => {
      this.point(...located(event));
      if (data.path) alpha.move(nearest(data.path.alphas, this.alphaAt(located(event)[0])));
    });
    new ResizeObserver(() => this.redraw()).observe(figure);
    this.redraw();
    if (data.path) alpha.listen(() => this.moveMark());
  }

  redraw() {
    const width = Math.floor(this.figure.clientWidth);
    if (width === this.width || width === 0) return;
    this.width = width;
    this.height = width < NARROW ? 300 : 380;
    this.svg.setAttribute('width', width);
    this.svg.setAttribute('height', this.height);
    this.svg.setAttribute('viewBox', `0 0 ${width} ${this.height}`);
    this.svg.replaceChildren();
    const { alphas, chosen, low, high } = this.spec;
    this.x = alphaScale(chosen === null ? alphas : [...alphas, chosen], width);
    const bottom = this.height - MARGIN.bottom;
    this.y = (value) => bottom - ((value - low) / (high - low)) * (bottom - MARGIN.top);
    this.drawAxes();
    this.spec.drawCurves(this);
    this.drawMarks();
    this.leave();
  }

  drawAxes() {
    const { svg, x, y, spec } = this;
    const bottom = this.height - MARGIN.bottom;
    const right = this.width - MARGIN.right;
    const axes = draw(svg, 'g', { class: 'axes' });
    for (const tick of linearTicks(spec.low, spec.high, this.height / 70)) {
      draw(axes, 'line', { class: 'grid', x1: MARGIN.left, x2: right, y1: y(tick), y2: y(tick) });
      draw(axes, 'text', { x: MARGIN.left - 8, y: y(tick), dy: '0.32em', 'text-anchor': 'end' }, number(tick));
    }
    draw(axes, 'line', { class: 'base', x1: MARGIN.left, x2: right, y1: bottom, y2: bottom });
    const countAt = (tick) => grouped(spec.selected[nearest(spec.alphas, tick)]);
    const widthOf = (tick) => 12 + 7 * Math.max(String(tick).length, spec.selected ? countAt(tick).length : 0);
    for (const tick of logTicks(x.low, x.high, x.length, widthOf)) {
      draw(axes, 'line', { class: 'base', x1: x.at(tick), x2: x.at(tick), y1: bottom, y2: bottom + 4 });
      draw(axes, 'text', { x: x.at(tick), y: bottom + 20, 'text-anchor': 'middle' }, String(tick));
      if (spec.selected) {
        draw(axes, 'text', { class: 'count', x: x.at(tick), y: MARGIN.top - 8, 'text-anchor': 'middle' }, countAt(tick));
      }
    }
    draw(axes, 'text', { class: 'title', x: right, y: this.height - 6, 'text-anchor': 'end' }, 'alpha');
    draw(axes, 'text', { class: 'title', x: 0, y: 12 }, spec.label);
    if (spec.selected) {
      draw(axes, 'text', { class: 'title count', x: right, y: 12, 'text-anchor': 'end' }, 'features selected');
    }
  }

  /** The style that cuts off all that lies outside of the axes. */
  inside() {
    const [left, right] = [MARGIN.left, this.width - MARGIN.right + 2];
    const [top, bottom] = [MARGIN.top - 2, this.height - MARGIN.bottom + 2];
    const corners = [[left, top], [right, top], [right, bottom], [left, bottom]].map(([x, y]) => `${x}px ${y}px`);
    return `clip-path: polygon(${corners.join(', ')}) view-box`;
  }

  drawMarks() {
    const { svg, x, spec } = this;
    const span = { y1: MARGIN.top, y2: this.height - MARGIN.bottom };
    if (spec.chosen !== null) {
      const at = x.at(spec.chosen);
      const isLeft = at > this.width / 2;
      draw(svg, 'line', { class: 'chosen', x1: at, x2: at, ...span });
      const place = { x: at + (isLeft ? -6 : 6), y: MARGIN.top + 12, 'text-anchor': isLeft ? 'end' : 'start' };
      draw(svg, 'text', { class: 'chosen-name', ...place }, `alpha ${number(spec.chosen)}`);
    }
    this.highlight = draw(svg, 'path', { class: 'highlight' });
    this.guide = draw(svg, 'line', { class: 'guide', ...span, visibility: 'hidden' });
    this.mark = data.path ? draw(svg, 'line', { class: 'mark', ...span }) : null;
    this.handle = data.path ? draw(svg, 'path', { class: 'mark-handle' }) : null;
    this.moveMark();
  }

  /** The line at the slider's alpha. */
  moveMark() {
    if (!this.mark) return;
    const at = this.x.at(data.path.alphas[alpha.index]);
    this.mark.setAttribute('x1', at);
    this.mark.setAttribute('x2', at);
    const bottom = this.height - MARGIN.bottom;
    this.handle.setAttribute('d', `M${at},${bottom}l-4,6h8z`);
  }

  /** The alpha at a horizontal position in pixels. */
  alphaAt(px) {
    const share = Math.min(Math.max((px - MARGIN.left) / this.x.length, 0), 1);
    return this.x.high * (this.x.low / this.x.high) ** share;
  }

  point(px, py) {
    const lines = this.spec.describe(this, px, py);
    if (!lines) {
      this.leave();
      return;
    }
    this.tip.replaceChildren(...lines.map((line, i) => element('div', { className: i ? '' : 'first' }, line)));
    this.tip.hidden = false;
    const room = this.figure.clientWidth - this.tip.offsetWidth;
    const left = px + 14 > room ? px - 14 - this.tip.offsetWidth : px + 14;
    this.tip.style.left = `${Math.max(Math.min(left, room), 0)}px`;
    const above = py - 10 - this.tip.offsetHeight;
    this.tip.style.top = `${above < 0 ? py + 16 : above}px`;
  }

  leave() {
    this.tip.hidden = true;
    this.guide.setAttribute('visibility', 'hidden');
    this.highlight.setAttribute('d', '');
    if (this.spec.left) this.spec.left(this);
  }
}

/** Position of the alpha nearest to a value, on the scale of the axis. */
function nearest(alphas, value) {
  let best = 0;
  const distance = (i) => Math.abs(Math.log(alphas[i] / value));
  for (let i = 1; i < alphas.length; i++) if (distance(i) < distance(best)) best = i;
  return best;
}
