// What all parts share: the data, elements, numbers, and the alpha that the slider is at.

const data = JSON.parse(document.getElementById('data').textContent);
const byId = (id) => document.getElementById(id);

/** A new HTML element; texts are never read as HTML. */
function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

/** A new SVG element inside another, whose namespace it takes. */
function draw(parent, tag, attributes = {}, words = null) {
  const made = document.createElementNS(parent.namespaceURI, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (words !== null) made.textContent = words;
  parent.append(made);
  return made;
}

/** A number with four significant digits, plain where it is neither huge nor tiny. */
function number(value, digits = 4) {
  if (value === null) return 'not defined';
  const size = Math.abs(value);
  if (size === 0) return '0';
  if (size < 1e-4 || size >= 1e6) return value.toExponential(digits - 1).replace(/\.?0*e/, 'e');
  const decimals = Math.max(digits - 1 - Math.floor(Math.log10(size)), 0);
  const written = value.toFixed(decimals);
  return written.includes('.') ? written.replace(/\.?0+$/, '') : written;
}

/** A number of a table: a count, or four significant digits, zeros at the end among them. */
function cell(value, isWhole) {
  if (value === null) return '–';
  if (value === 0 || isWhole) return String(value);
  const power = Number(value.toExponential(3).split('e')[1]);
  return power < -4 || power >= 6 ? value.toExponential(3) : value.toFixed(Math.max(3 - power, 0));
}

const grouped = (n) => n.toLocaleString('en-US');
const counted = (n, noun) => `${grouped(n)} ${noun}${n === 1 ? '' : 's'}`;

/** The alpha of the slider, and who wants to know when it moves. */
const alpha = {
  index: data.path ? data.path.start : -1,
  listeners: [],
  listen(callback) {
    this.listeners.push(callback);
    callback(this.index);
  },
  move(index) {
    if (index === this.index) return;
    this.index = index;
    for (const callback of this.listeners) callback(index);
  },
};

/** Calls a function at most once for each picture that the screen shows, with its latest arguments. */
function oncePerFrame(callback) {
  let waiting = null;
  return (...given) => {
    if (waiting === null) {
      requestAnimationFrame(() => {
        const latest = waiting;
        waiting = null;
        callback(...latest);
      });
    }
    waiting = given;
  };
}
