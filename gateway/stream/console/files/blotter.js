// @ts-check
// A list of up to 100,000 orders, newest first, of which only the rows in sight are elements.
import {Chosen, columns} from "./columns.js"

/**
 * @typedef {{key: string, partition: number, at: string, topic: string, data: any, text: string, arrived: number, gap?: string}} Row
 * @typedef {import("./columns.js").Column} Column
 */

const most = 100000
const height = 26

/**
 * A filter as typed: words that all have to be in a row, field:value, field>number, field<number.
 * @param {string} typed
 * @returns {(r: Row) => boolean}
 */
export function parseFilter(typed) {
  /** @type {((r: Row) => boolean)[]} */
  const tests = typed.toLowerCase().split(/\s+/).filter(Boolean).map(word => {
    const m = /^(\w+)([:<>])(.+)$/.exec(word)
    const column = m && columns.find(c => c.name.toLowerCase() === m[1])
    if (!m || !column) return r => r.text.includes(word)
    if (m[2] === ":") return r => column.cell(r).toLowerCase().includes(m[3])
    const limit = Number(m[3])
    return r => {
      const n = Number(column.cell(r) || NaN)
      return m[2] === ">" ? n > limit : n < limit
    }
  })
  return r => tests.every(t => t(r))
}

export class Blotter {
  /**
   * @param {{list: HTMLElement, scroll: HTMLElement, sizer: HTMLElement, rows: HTMLElement, head: HTMLElement, count: HTMLElement}} e
   * @param {(r: Row) => void} onOpen
   */
  constructor(e, onOpen) {
    this.e = e
    this.onOpen = onOpen
    /** @type {Row[]} oldest first */
    this.all = []
    /** @type {Row[]} of them, those that the filter lets through */
    this.shown = []
    /** @type {Set<string>} */
    this.keys = new Set()
    /** @type {Row[]} not in the list yet */
    this.waiting = []
    this.filter = parseFilter("")
    this.filtered = false
    this.held = false
    this.selected = ""
    this.due = false
    /** @type {HTMLElement[]} */
    this.pool = []
    this.chosen = new Chosen(() => this.arrange())
    this.columns = columns
    this.arrange()
    e.scroll.addEventListener("scroll", () => this.soon(), {passive: true})
    new ResizeObserver(() => this.soon()).observe(e.scroll)
    e.rows.addEventListener("click", ev => {
      const key = /** @type {HTMLElement} */ (ev.target).closest(".row")?.getAttribute("data-key")
      if (key) this.select(key, true)
    })
  }

  /** @param {Omit<Row, "text"|"key"|"arrived">} m */
  add(m) {
    const key = `${m.partition}/${m.at}${m.gap ? "!" : ""}`
    if (this.keys.has(key)) return
    this.keys.add(key)
    const row = /** @type {Row} */ ({...m, key, arrived: Date.now(), text: ""})
    row.text = m.gap ? m.gap.toLowerCase() : columns.map(c => c.cell(row)).join(" ").toLowerCase()
    this.waiting.push(row)
    if (this.waiting.length > most) this.keys.delete(/** @type {Row} */ (this.waiting.shift()).key)
    this.soon()
  }

  /** Draws the rows anew with the columns that are chosen. */
  arrange() {
    const {columns, template} = this.chosen.shown()
    this.columns = columns
    this.e.list.style.setProperty("--columns", template)
    this.e.head.replaceChildren(...columns.map(c => cellOf(c, c.title)))
    for (const el of this.pool) {
      el.replaceChildren()
      el.removeAttribute("data-key")
    }
    this.soon()
  }

  clear() {
    this.all = []
    this.shown = []
    this.waiting = []
    this.keys.clear()
    this.selected = ""
    this.soon()
  }

  /** @param {string} typed */
  setFilter(typed) {
    this.filter = parseFilter(typed)
    this.filtered = typed.trim() !== ""
    this.shown = this.filtered ? this.all.filter(this.filter) : this.all.slice()
    this.e.scroll.scrollTop = 0
    this.soon()
  }

  /** @param {boolean} held */
  hold(held) {
    this.held = held
    this.soon()
  }

  soon() {
    if (this.due) return
    this.due = true
    requestAnimationFrame(() => {
      this.due = false
      if (!this.held) this.takeIn()
      this.draw()
    })
  }

  takeIn() {
    if (this.waiting.length === 0) return
    const passed = this.filtered ? this.waiting.filter(this.filter) : this.waiting
    for (const r of this.waiting) this.all.push(r)
    for (const r of passed) this.shown.push(r)
    if (this.all.length > most) {
      const gone = this.all.splice(0, this.all.length - most)
      for (const r of gone) this.keys.delete(r.key)
      let n = 0
      while (n < this.shown.length && !this.keys.has(this.shown[n].key)) n++
      this.shown.splice(0, n)
    }
    // Who has scrolled down goes on reading the same rows.
    if (this.e.scroll.scrollTop > height) {
      this.size()
      this.e.scroll.scrollTop += passed.length * height
    }
    this.waiting = []
  }

  size() { this.e.sizer.style.height = `${this.shown.length * height}px` }

  draw() {
    const {scroll, rows, count} = this.e
    this.size()
    const first = Math.max(0, Math.floor(scroll.scrollTop / height) - 4)
    const last = Math.min(this.shown.length, first + Math.ceil(scroll.clientHeight / height) + 8)
    while (this.pool.length < last - first) this.pool.push(rowElement(rows))
    this.pool.forEach((el, i) => {
      el.hidden = first + i >= last
      if (!el.hidden) this.fill(el, first + i)
    })
    scroll.setAttribute("aria-rowcount", String(this.shown.length))
    const n = new Intl.NumberFormat("en")
    count.textContent = `${n.format(this.shown.length)}${this.filtered ? " of " + n.format(this.all.length) : ""} orders` +
      (this.held && this.waiting.length ? `, ${n.format(this.waiting.length)} new` : "")
  }

  /** @param {HTMLElement} el @param {number} i */
  fill(el, i) {
    const r = this.shown[this.shown.length - 1 - i]
    el.style.transform = `translateY(${i * height}px)`
    el.setAttribute("aria-selected", String(r.key === this.selected))
    if (r.key === this.selected) this.e.scroll.setAttribute("aria-activedescendant", el.id)
    el.setAttribute("aria-rowindex", String(i + 1))
    if (el.getAttribute("data-key") === r.key) return
    el.setAttribute("data-key", r.key)
    el.className = r.gap ? "row gap" : "row"
    if (r.gap) {
      el.textContent = r.gap
      return
    }
    if (el.childElementCount !== this.columns.length) el.replaceChildren(...this.columns.map(c => cellOf(c, "")))
    this.columns.forEach((c, k) => {
      const cell = /** @type {HTMLElement} */ (el.children[k])
      cell.textContent = c.cell(r)
      if (c.name === "side") cell.className = /^buy/.test(r.data.side) ? "buy" : /^sell/.test(r.data.side) ? "sell" : ""
    })
  }

  /** @param {string} key @param {boolean} open */
  select(key, open) {
    this.selected = key
    const r = this.row()
    if (r && open && !r.gap) this.onOpen(r)
    this.soon()
  }

  row() { return this.shown.find(r => r.key === this.selected) }

  /** Moves the selection by rows; Infinity is the end. @param {number} by */
  move(by) {
    const n = this.shown.length
    if (n === 0) return
    const now = n - 1 - this.shown.findIndex(r => r.key === this.selected)
    const next = now >= n ? 0 : Math.min(n - 1, Math.max(0, now + by))
    this.selected = this.shown[n - 1 - next].key
    const {scroll} = this.e
    if (next * height < scroll.scrollTop) scroll.scrollTop = next * height
    if ((next + 1) * height > scroll.scrollTop + scroll.clientHeight) scroll.scrollTop = (next + 1) * height - scroll.clientHeight
    this.soon()
  }

  page() { return Math.max(1, Math.floor(this.e.scroll.clientHeight / height) - 1) }

  /** What is known of an order: its own message, and those that replace or cancel it. @param {Row} r */
  chain(r) {
    const ids = new Set([r.data.clOrdID, r.data.origClOrdID].filter(Boolean))
    /** @type {Row[]} */
    let found = []
    for (let before = -1; before !== ids.size;) {
      before = ids.size
      found = this.all.filter(o => !o.gap && (ids.has(o.data.clOrdID) || ids.has(o.data.origClOrdID)))
      for (const o of found) for (const id of [o.data.clOrdID, o.data.origClOrdID]) if (id) ids.add(id)
    }
    return found.sort((a, b) => (a.data.received < b.data.received ? -1 : 1))
  }
}

let rowNumber = 0

/** @param {HTMLElement} parent */
function rowElement(parent) {
  const el = document.createElement("div")
  el.className = "row"
  el.id = `row-${rowNumber++}`
  el.setAttribute("role", "row")
  parent.append(el)
  return el
}

/** @param {Column} c @param {string} text */
function cellOf(c, text) {
  const el = document.createElement("span")
  el.setAttribute("role", "gridcell")
  el.textContent = text
  if (c.class) el.className = c.class
  return el
}
