// Elements and texts.

export const $ = (id) => document.getElementById(id);

// An element with a class, texts and other elements in it.
export function make(tag, className, ...content) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  element.append(...content);
  return element;
}

export function button(text, label, onClick) {
  const element = make('button', '', text);
  element.type = 'button';
  element.setAttribute('aria-label', label);
  element.addEventListener('click', onClick);
  return element;
}

const format = new Intl.NumberFormat('en');
export const count = (number) => format.format(number);
export const counted = (number, one, many = one + 's') => `${count(number)} ${number === 1 ? one : many}`;
export const percent = (part, whole) => (whole === 0 ? 0 : Math.round(100 * part / whole));

export function bytes(number) {
  for (const unit of ['B', 'KB', 'MB', 'GB']) {
    if (number < 1000) return `${number < 10 && unit !== 'B' ? number.toFixed(1) : Math.round(number)} ${unit}`;
    number /= 1000;
  }
  return `${Math.round(number)} TB`;
}
