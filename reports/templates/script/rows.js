// Long tables: only the rows in sight are in the document. Rows have one height, given by the style.
const WHOLE_MAX = 300;
const BEYOND = 20;

class Rows {
  // `draw(item, index)` makes a row; `scroller` is what scrolls; `body` is the table's.
  constructor(scroller, table, draw) {
    this.scroller = scroller;
    this.table = table;
    this.body = table.tBodies[0];
    this.draw = draw;
    this.items = [];
    this.drawn = new Map();
    this.above = this.spacer();
    this.below = this.spacer();
    this.printing = false;
    let asked = false;
    scroller.addEventListener('scroll', () => {
      if (asked) return;
      asked = true;
      requestAnimationFrame(() => { asked = false; this.render(); });
    }, { passive: true });
  }

  spacer() {
    return element('tr', { 'aria-hidden': 'true', class: 'spacer' }, element('td'));
  }

  set(items) {
    this.items = items;
    this.drawn.clear();
    this.body.replaceChildren(this.above, this.below);
    this.table.setAttribute('aria-rowcount', items.length + 1);
    this.height = 0;
    this.render();
  }

  render() {
    const all = this.items.length;
    let from = 0, to = all;
    if (this.printing) {
      to = Math.min(all, WHOLE_MAX);
    } else if (all > WHOLE_MAX) {
      this.height ||= this.measure();
      from = Math.max(0, Math.floor(this.scroller.scrollTop / this.height) - BEYOND);
      to = Math.min(all, Math.ceil((this.scroller.scrollTop + this.scroller.clientHeight) / this.height) + BEYOND);
    }
    for (const [index, row] of this.drawn) {
      if ((index < from || index >= to) && !row.contains(document.activeElement)) {
        row.remove();
        this.drawn.delete(index);
      }
    }
    for (let index = from; index < to; index++) this.row(index);
    const outside = [...this.drawn.keys()].filter((index) => index < from || index >= to);
    this.space(this.above, from - outside.filter((index) => index < from).length);
    this.space(this.below, all - to - outside.filter((index) => index >= to).length);
  }

  space(spacer, rows) {
    spacer.hidden = rows <= 0 || this.printing;
    spacer.firstChild.style.height = `${Math.max(0, rows) * (this.height || 0)}px`;
  }

  measure() {
    const first = this.row(0);
    return first.getBoundingClientRect().height || 30;
  }

  // The row of a place, drawn where it is not yet.
  row(index) {
    let row = this.drawn.get(index);
    if (!row) {
      row = this.draw(this.items[index], index);
      row.setAttribute('aria-rowindex', index + 2);
      row.dataset.index = index;
      const after = [...this.drawn.keys()].filter((other) => other > index);
      const next = after.length ? this.drawn.get(Math.min(...after)) : this.below;
      this.body.insertBefore(row, next);
      this.drawn.set(index, row);
    }
    return row;
  }

  // Brings a place into sight and gives its row.
  show(index) {
    if (index < 0 || index >= this.items.length) return null;
    if (this.items.length > WHOLE_MAX) {
      const top = index * this.height, room = this.scroller.clientHeight;
      const head = this.table.tHead.getBoundingClientRect().height;
      if (top < this.scroller.scrollTop || top + this.height + head > this.scroller.scrollTop + room) {
        this.scroller.scrollTop = Math.max(0, top - room / 2);
      }
      this.render();
    }
    const row = this.row(index);
    row.scrollIntoView({ block: 'nearest', inline: 'nearest' });
    return row;
  }

  redraw(index) {
    const old = this.drawn.get(index);
    if (!old) return;
    const focused = old.contains(document.activeElement);
    this.drawn.delete(index);
    const made = this.row(index);
    old.remove();
    if (focused) made.querySelector('button')?.focus();
  }

  print(printing) {
    this.printing = printing;
    this.render();
  }
}
