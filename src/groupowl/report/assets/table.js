// The table of features: sorted by its headings, searched by name, cut where it is long.

function startTable(table) {
  const { names, columns, features } = table;
  const body = byId('features').tBodies[0];
  const headings = [...byId('features').tHead.rows[0].cells];
  const search = byId('search');
  const atSlider = byId('at-slider');
  const scaled = byId('scaled');
  const showAll = byId('show-all');
  const lowered = names.map((name) => name.toLowerCase());
  const rowOf = new Map(data.path ? data.path.features.map((feature, r) => [feature, data.path.rows[r]]) : []);
  const collator = new Intl.Collator('en', { numeric: true });
  const order = { column: 1, sign: 1 }; // the rows come by cluster
  let isLong = false; // whether all rows are shown

  /** Numbers of a column, on the scale that was asked for. */
  const valuesOf = (column) => (scaled && scaled.checked && column.scaled ? column.scaled : column.values);

  /** How two rows compare in a column; equal ones stay in the order they came in. */
  function compare(one, other) {
    if (order.column === 0) return order.sign * collator.compare(names[one], names[other]) || one - other;
    const { kind } = columns[order.column - 1];
    const known = valuesOf(columns[order.column - 1]);
    const values = kind === 'cluster' ? known.map((value) => value || null) : known; // what is not penalized has none
    if (values[one] === null || values[other] === null) {
      return (values[one] === null) - (values[other] === null) || one - other; // what is not known comes last
    }
    return order.sign * (values[one] - values[other]) || one - other;
  }

  function isShown(row, wanted) {
    if (!lowered[row].includes(wanted)) return false;
    if (!atSlider || !atSlider.checked) return true;
    const onPath = rowOf.get(features[row]);
    return onPath !== undefined && at(onPath, VALUES, alpha.index) !== 0;
  }

  function rowElement(row) {
    const made = element('tr', {}, element('th', { scope: 'row' }, element('div', {}, names[row])));
    for (const column of columns) {
      const value = valuesOf(column)[row];
      const words = column.kind === 'cluster' && value === 0 ? '–' : cell(value, column.whole);
      made.append(element('td', { className: column.kind }, words));
    }
    return made;
  }

  function render() {
    const wanted = search.value.trim().replace(/\s+/g, ' ').toLowerCase();
    const rows = names.map((_, row) => row).filter((row) => isShown(row, wanted)).sort(compare);
    const shown = isLong ? rows : rows.slice(0, table.shown);
    const none = element('tr', {}, element('td', { colSpan: headings.length, className: 'none' }, 'No feature matches.'));
    body.replaceChildren(...(shown.length ? shown.map(rowElement) : [none]));
    const cut = shown.length < rows.length ? `, the first ${grouped(shown.length)} shown` : '';
    byId('shown').textContent = rows.length < names.length
      ? `${grouped(rows.length)} of ${counted(names.length, 'feature')}${cut}` : `${counted(names.length, 'feature')}${cut}`;
    showAll.hidden = rows.length <= table.shown;
    showAll.textContent = isLong ? 'Show fewer rows' : `Show all ${grouped(rows.length)} rows`;
  }

  function sortBy(column) {
    const isLargestFirst = column > 1; // norms and coefficients; names and clusters begin with the smallest
    order.sign = order.column === column ? -order.sign : isLargestFirst ? -1 : 1;
    order.column = column;
    showOrder();
    render();
  }

  function showOrder() {
    headings.forEach((heading, i) => {
      if (i === order.column) heading.setAttribute('aria-sort', order.sign > 0 ? 'ascending' : 'descending');
      else heading.removeAttribute('aria-sort');
    });
  }

  headings.forEach((heading, i) => {
    const button = element('button', { type: 'button' }, heading.textContent);
    button.addEventListener('click', () => sortBy(i));
    heading.replaceChildren(button);
  });
  search.addEventListener('input', oncePerFrame(render));
  if (scaled) scaled.addEventListener('change', render);
  if (atSlider) {
    atSlider.addEventListener('change', render);
    alpha.listen(oncePerFrame(() => atSlider.checked && render()));
  }
  showAll.addEventListener('click', () => {
    isLong = !isLong;
    render();
  });
  showOrder();
  render();
}
