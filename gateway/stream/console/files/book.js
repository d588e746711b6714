// @ts-check
// The ladder of a book: each message is all of it, and the latest counts.
import {byID} from "./grid.js"

/**
 * @typedef {[string, string, number]} Level price, quantity, orders
 * @typedef {{symbol: string, state: string, until?: string, last?: string, bids?: Level[], asks?: Level[]}} Book
 */

const levels = 10 // of each side that are shown

export class BookView {
  /** @param {import("./stream.js").Stream} stream */
  constructor(stream) {
    this.stream = stream
    this.id = 0
  }

  /** Shows the book of a symbol; "" for none. @param {string} symbol */
  open(symbol) {
    this.stream.unwatch(this.id)
    this.id = 0
    byID("book-rows").replaceChildren()
    byID("book-state").textContent = ""
    if (!symbol) return
    byID("book-state").textContent = `${symbol}: no answer yet`
    this.id = this.stream.watch({topics: `book.${token(symbol)}.L2`, flush_ms: 100}, {
      onStart: () => {},
      onMessage: m => this.show(m),
      onError: text => { byID("book-state").textContent = text },
    })
  }

  /** @param {import("./stream.js").Message} m */
  show(m) {
    /** @type {Book} */
    const b = m.data
    const text = [`${b.symbol} ${b.state}`]
    if (b.until) text.push(`until ${b.until}`)
    if (b.last) text.push(`last ${b.last}`)
    byID("book-state").textContent = b.state === "unknown" ? `${b.symbol} is not traded by this grid` : `${text.join(", ")}, after p${m.partition}/${m.at}`
    const asks = (b.asks || []).slice(0, levels).reverse()
    const bids = (b.bids || []).slice(0, levels)
    const most = Math.max(1, ...[...asks, ...bids].map(l => Number(l[1])))
    byID("book-rows").replaceChildren(...asks.map(l => row(l, "sell", most)), ...bids.map(l => row(l, "buy", most)))
  }
}

/** @param {Level} l @param {"buy"|"sell"} side @param {number} most */
function row([price, qty, orders], side, most) {
  const tr = document.createElement("tr")
  tr.className = side
  const cells = side === "buy" ? [String(orders), qty, price, "", ""] : ["", "", price, qty, String(orders)]
  for (const text of cells) {
    const td = document.createElement("td")
    td.textContent = text
    tr.append(td)
  }
  tr.children[side === "buy" ? 1 : 3].setAttribute("data-share", String(Math.ceil(10 * Number(qty) / most)))
  return tr
}

/** A symbol as a token of a topic. @param {string} text */
export function token(text) {
  const bytes = new TextEncoder().encode(text)
  return [...bytes].map(c => c > 32 && c < 127 && !'.*><%"\\'.includes(String.fromCharCode(c)) ? String.fromCharCode(c) : "%" + c.toString(16).toUpperCase().padStart(2, "0")).join("") || "%"
}
