// A map of regions: a column for each server, in it a cell for each of its regions in the order of keys.

const gap = 10;            // between columns, in CSS pixels
const heading = 20;        // above the cells of a column
const leastColumn = 56;    // width; more servers make more rows of columns
const mostCell = 22;
const mapHeight = 300;

export class Cells {
  #canvas;
  #columns = [];    // {name, state, regions}
  #colourOf = () => 'none';
  #places = [];     // of columns: {x, y, perRow}
  #cell = 1;
  #chosen = null;   // {column, index}
  #drawn = false;

  // onChoose(region or null): by a click or by the arrow keys.
  constructor(canvas, onChoose) {
    this.#canvas = canvas;
    this.onChoose = onChoose;
    canvas.addEventListener('click', (event) => this.#choose(this.#at(event.offsetX, event.offsetY)));
    canvas.addEventListener('keydown', (event) => this.#onKey(event));
    canvas.addEventListener('focus', () => this.draw());
    canvas.addEventListener('blur', () => this.draw());
    new ResizeObserver(() => this.draw()).observe(canvas.parentElement);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.draw());
  }

  // colourOf(region): the name of a colour (--NAME in the style), and a mark or nothing.
  show(columns, colourOf) {
    const chosen = this.chosen()?.id;
    this.#columns = columns;
    this.#colourOf = colourOf;
    this.#chosen = null;
    if (chosen) this.choose(chosen);
    this.draw();
  }

  chosen() {
    return this.#chosen && this.#columns[this.#chosen.column].regions[this.#chosen.index];
  }

  choose(id) {
    this.#columns.forEach(({ regions }, column) => {
      const index = regions.findIndex((region) => region.id === id);
      if (index >= 0) this.#chosen = { column, index };
    });
  }

  // Where the middle of a region's cell is, in the canvas; for tests and tips.
  placeOf(id) {
    for (const [column, { regions }] of this.#columns.entries()) {
      const index = regions.findIndex((region) => region.id === id);
      if (index >= 0) {
        const [x, y] = this.#corner(column, index);
        return { x: x + this.#cell / 2, y: y + this.#cell / 2 };
      }
    }
    return null;
  }

  // Draws before the next frame, once however often it is called.
  draw() {
    if (this.#drawn) return;
    this.#drawn = true;
    requestAnimationFrame(() => {
      this.#drawn = false;
      this.#drawNow();
    });
  }

  #lay(width) {
    const columns = Math.max(1, this.#columns.length);
    const perBand = Math.max(1, Math.min(columns, Math.floor((width + gap) / (leastColumn + gap))));
    const bands = Math.ceil(columns / perBand);
    const columnWidth = Math.floor((width + gap) / perBand) - gap;
    const most = Math.max(1, ...this.#columns.map(({ regions }) => regions.length));
    const height = Math.max(60, mapHeight / bands);
    this.#cell = Math.max(1, Math.min(mostCell, Math.floor(Math.sqrt(columnWidth * height / most))));
    const perRow = Math.max(1, Math.floor(columnWidth / this.#cell));
    let y = 0;
    this.#places = [];
    for (let first = 0; first < this.#columns.length; first += perBand) {
      const band = this.#columns.slice(first, first + perBand);
      band.forEach((_, i) => this.#places.push({ x: i * (columnWidth + gap), y: y + heading, perRow, width: columnWidth }));
      const rows = Math.max(1, ...band.map(({ regions }) => Math.ceil(regions.length / perRow)));
      y += heading + rows * this.#cell + gap;
    }
    return Math.max(y, heading + mostCell);
  }

  #corner(column, index) {
    const { x, y, perRow } = this.#places[column];
    return [x + (index % perRow) * this.#cell, y + Math.floor(index / perRow) * this.#cell];
  }

  #drawNow() {
    const canvas = this.#canvas;
    const width = canvas.parentElement.clientWidth - 34;
    if (width < 40) return;
    const height = this.#lay(width);
    const scale = devicePixelRatio || 1;
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    const context = canvas.getContext('2d');
    context.scale(scale, scale);
    const style = getComputedStyle(document.documentElement);
    const colours = new Map();
    const colour = (name) => {
      if (!colours.has(name)) colours.set(name, style.getPropertyValue(`--${name}`).trim());
      return colours.get(name);
    };
    this.#columns.forEach((column, i) => this.#drawColumn(context, column, i, colour));
    if (this.#chosen) this.#drawChosen(context, colour);
  }

  #drawColumn(context, { name, state, regions }, i, colour) {
    const { x, y, width } = this.#places[i];
    context.font = '600 12px system-ui, sans-serif';
    context.fillStyle = colour(state === 'live' ? 'text' : 'danger');
    context.fillText(state === 'live' ? name : `${name} (${state})`, x, y - 6, width);
    const size = this.#cell;
    const inner = size >= 4 ? size - 1 : size;
    regions.forEach((region, index) => {
      const [left, top] = this.#corner(i, index);
      const [fill, mark] = this.#colourOf(region);
      context.fillStyle = colour(fill);
      context.fillRect(left, top, inner, inner);
      if (mark && size >= 9) this.#drawMark(context, mark, left + inner / 2, top + inner / 2, inner, colour('mark'));
    });
  }

  // What was asked is seen without colours, too.
  #drawMark(context, mark, x, y, size, colour) {
    context.strokeStyle = colour;
    context.fillStyle = colour;
    context.lineWidth = 2;
    context.beginPath();
    if (mark === 'dot') {
      context.arc(x, y, size / 5, 0, 2 * Math.PI);
      context.fill();
    } else {
      context.moveTo(x - size / 4, y + size / 4);
      context.lineTo(x + size / 4, y - size / 4);
      if (mark === 'cross') {
        context.moveTo(x - size / 4, y - size / 4);
        context.lineTo(x + size / 4, y + size / 4);
      }
      context.stroke();
    }
  }

  #drawChosen(context, colour) {
    const [x, y] = this.#corner(this.#chosen.column, this.#chosen.index);
    const size = Math.max(6, this.#cell);
    context.strokeStyle = colour('text');
    context.lineWidth = document.activeElement === this.#canvas ? 3 : 2;
    context.strokeRect(x - 1, y - 1, size + 1, size + 1);
  }

  #at(x, y) {
    for (const [column, place] of this.#places.entries()) {
      const across = Math.floor((x - place.x) / this.#cell);
      const down = Math.floor((y - place.y) / this.#cell);
      if (across < 0 || across >= place.perRow || down < 0) continue;
      const index = down * place.perRow + across;
      if (index < this.#columns[column].regions.length) return { column, index };
    }
    return null;
  }

  #choose(place) {
    this.#chosen = place;
    this.draw();
    this.onChoose(this.chosen());
  }

  #onKey(event) {
    const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: 'up', ArrowDown: 'down', Home: 'home', End: 'end' };
    const step = steps[event.key];
    if (step === undefined || this.#places.length === 0) return;
    event.preventDefault();
    const all = this.#columns.flatMap(({ regions }, column) => regions.map((_, index) => ({ column, index })));
    if (all.length === 0) return;
    const { column, index } = this.#chosen ?? { column: -1, index: 0 };
    let at = all.findIndex((place) => place.column === column && place.index === index);
    const rows = this.#chosen ? this.#places[column].perRow : 1;
    if (step === 'home' || (at < 0 && step !== 'end')) at = 0;
    else if (step === 'end') at = all.length - 1;
    else at += step === 'up' ? -rows : step === 'down' ? rows : step;
    this.#choose(all[Math.max(0, Math.min(all.length - 1, at))]);
  }
}
