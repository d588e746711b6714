// @ts-check
// The columns of the list: which are shown stays in this browser.

/** @typedef {import("./blotter.js").Row} Row */

/**
 * widths are those on a page of full width, on one below 1000 px and on one below 700 px; a column without a width is not
 * shown there.
 * @typedef {{name: string, title: string, cell: (r: Row) => string, class?: string, widths: [string, string?, string?]}} Column
 */

/** @type {Column[]} */
export const columns = [
  {name: "received", title: "received", cell: r => time(r.data.received), widths: ["108px", "96px", "96px"]},
  {name: "account", title: "account", cell: r => r.data.account || "", widths: ["minmax(60px,1fr)", "minmax(60px,1fr)"]},
  {name: "symbol", title: "symbol", cell: r => r.data.symbol || "", widths: ["minmax(60px,1fr)", "minmax(60px,1fr)", "minmax(44px,1fr)"]},
  {name: "side", title: "side", cell: r => r.data.side || "", widths: ["86px", "64px", "36px"]},
  {name: "qty", title: "qty", cell: r => r.data.qty || "", class: "num", widths: ["84px", "72px", "52px"]},
  {name: "price", title: "price", cell: r => r.data.price || "", class: "num", widths: ["92px", "80px", "66px"]},
  {name: "kind", title: "kind", cell: r => r.data.kind || "", widths: ["68px"]},
  {name: "clOrdID", title: "ClOrdID", cell: r => r.data.clOrdID || "", widths: ["minmax(90px,1.6fr)"]},
  {name: "at", title: "position", cell: r => `p${r.partition}/${r.at}`, widths: ["90px"]},
]

/** @param {string} text RFC 3339 */
export function time(text) {
  const at = new Date(text)
  if (isNaN(at.getTime())) return ""
  /** @param {number} n @param {number} w */
  const pad = (n, w = 2) => String(n).padStart(w, "0")
  return `${pad(at.getHours())}:${pad(at.getMinutes())}:${pad(at.getSeconds())}.${pad(at.getMilliseconds(), 3)}`
}

const key = "columns"
const narrower = [matchMedia("(max-width:1000px)"), matchMedia("(max-width:700px)")]

/** The columns that are hidden, from what this browser has kept. @returns {Set<string>} */
function kept() {
  try {
    const names = JSON.parse(localStorage.getItem(key) || "[]")
    return new Set(columns.map(c => c.name).filter(n => Array.isArray(names) && names.includes(n)))
  } catch {
    return new Set()
  }
}

export class Chosen {
  /** @param {() => void} onChange */
  constructor(onChange) {
    this.onChange = onChange
    this.hidden = kept()
    if (this.hidden.size === columns.length) this.hidden.clear()
    for (const m of narrower) m.addEventListener("change", onChange)
  }

  /** Those in sight on a page of this width. */
  shown() {
    const size = narrower.filter(m => m.matches).length
    const all = columns.filter(c => !this.hidden.has(c.name) && c.widths[size])
    return {columns: all, template: all.map(c => c.widths[size]).join(" ")}
  }

  /** Shows a column, or does not; the last one stays. @param {string} name @param {boolean} on */
  set(name, on) {
    if (on) this.hidden.delete(name)
    else if (this.hidden.size < columns.length - 1) this.hidden.add(name)
    localStorage.setItem(key, JSON.stringify([...this.hidden]))
    this.onChange()
  }

  /** A list of boxes to choose by. @param {HTMLElement} list */
  list(list) {
    list.replaceChildren(...columns.map(c => {
      const label = document.createElement("label")
      const box = document.createElement("input")
      box.type = "checkbox"
      box.name = c.name
      box.checked = !this.hidden.has(c.name)
      box.addEventListener("change", () => {
        this.set(c.name, box.checked)
        box.checked = !this.hidden.has(c.name)
      })
      label.append(box, c.title)
      return label
    }))
  }
}
