// @ts-check
import {Blotter} from "./blotter.js"
import {BookView, token} from "./book.js"
import {columns, time} from "./columns.js"
import {Downstream} from "./downstream.js"
import {Drills} from "./drills.js"
import {GridMap, byID} from "./grid.js"
import {Stream, ofStream} from "./stream.js"

/** @typedef {import("./blotter.js").Row} Row */

const input = /** @param {string} id */ id => /** @type {HTMLInputElement} */ (byID(id))
const downstream = new Downstream(() => soon())
const drills = new Drills()
const map = new GridMap(downstream)
let may = ["orders.>", "executions.>", "book.>", "downstream.>", "user.drills.>"] // what the client may read, as far as is known
/** @param {string} stream */
const mayRead = stream => may.some(t => t === ">" || t.startsWith("*") || t.split(".")[0] === stream)
const blotter = new Blotter({list: byID("blotter"), scroll: byID("scroll"), sizer: byID("sizer"), rows: byID("rows"), head: byID("head"), count: byID("count")}, show)

const stream = new Stream({
  onState(state, text) {
    byID("state").dataset.state = state
    byID("state").textContent = text
    if (state === "open") begin()
  },
  onWelcome(client, topics) {
    document.title = `OrderGrid console, ${client}`
    may = topics
  },
  onRefused(text) {
    byID("refusal").textContent = text
    byID("login").hidden = false
    byID("main").hidden = true
    input("token").focus()
  },
  onMessage: m => blotter.add(m),
  onGap(ranges) {
    for (const r of ranges) {
      const gap = `${r.count || "Some"} orders of p${r.partition} are missing here, behind entry ${r.after} up to ${r.through}`
      blotter.add({partition: r.partition, at: r.through, topic: "", data: {}, gap})
    }
  },
  onAnew() {
    blotter.clear()
    downstream.clear()
  },
  onStatus: s => map.show(s),
})

const book = new BookView(stream)
const positions = 5000 // of sinks, to begin with

let following = false

/** Begins to follow what is beside the orders, once. */
function follow() {
  if (following) return
  following = true
  for (const topics of ofStream(may, "downstream")) {
    stream.watch({topics, policy: "conflate", flush_ms: 100, last: positions}, {onStart: () => downstream.clear(), onMessage: m => downstream.add(m), onError: () => {}})
  }
  if (mayRead("user")) {
    stream.watch({topics: "user.drills.>", policy: "conflate", flush_ms: 100}, {onStart: () => drills.clear(), onMessage: m => drills.add(m), onError: () => {}})
  }
}

function begin() {
  follow()
  byID("book").hidden = !mayRead("book")
  byID("login").hidden = true
  byID("refusal").textContent = ""
  input("token").value = ""
  if (byID("main").hidden) {
    byID("main").hidden = false
    byID("scroll").focus()
  }
}

byID("login").addEventListener("submit", e => {
  e.preventDefault()
  byID("refusal").textContent = ""
  stream.open(input("token").value.trim())
})

/** @param {HTMLElement} list @param {[string, string][]} pairs */
function fill(list, pairs) {
  list.replaceChildren(...pairs.filter(p => p[1]).flatMap(([name, value]) => {
    const dt = document.createElement("dt")
    const dd = document.createElement("dd")
    dt.textContent = name
    dd.textContent = value
    return [dt, dd]
  }))
}

let executionsID = 0

/** Lists what the grid did with an order, from the last messages of the gateway on. @param {Row} r */
function showExecutions(r) {
  stream.unwatch(executionsID)
  byID("executions").replaceChildren()
  if (!mayRead("executions") || !r.data.clOrdID) return
  const of = [r.data.account, r.data.symbol, r.data.side].map(v => token(v || ""))
  executionsID = stream.watch({topics: ["executions", ...of].join("."), filter: [{field: "clOrdID", equal: r.data.clOrdID}], last: 100}, {
    onStart: () => byID("executions").replaceChildren(),
    onMessage(m) {
      const li = document.createElement("li")
      const d = m.data
      li.textContent = [`${time(d.received)} ${d.id}`, d.kind, d.qty && d.price ? `${d.qty} at ${d.price}` : "", d.leaves ? `${d.leaves} left` : "", d.reason || ""].filter(Boolean).join(", ")
      byID("executions").append(li)
    },
    onError: () => {}, // it may not read those of this account
  })
}

/** @type {Row|null} the order whose details are shown */
let shown = null

/** @param {Row} r */
function show(r) {
  shown = r
  showExecutions(r)
  byID("detail").hidden = false
  byID("detail-title").textContent = `${r.data.kind || "order"} ${r.data.clOrdID || ""}`
  fill(byID("detail-fields"), [...columns.map(c => /** @type {[string, string]} */ ([c.title, c.cell(r)])),
    ["replaces", r.data.origClOrdID || ""], ["OrdType (40)", r.data.ordType || ""], ["TimeInForce (59)", r.data.tif || ""], ["epoch", String(r.data.epoch ?? "")], ["topic", r.topic]])
  showLife(r)
}

/** @param {Row} r */
function showLife(r) {
  const steps = []
  for (const o of blotter.chain(r)) {
    const at = `p${o.partition}/${o.at}`
    steps.push(`${time(o.data.received)} ${o.data.kind} ${o.data.clOrdID} received by the primary`, `replicated and committed as ${at}, epoch ${o.data.epoch}`)
    /** @type {[number, string][]} */
    const behind = [[o.arrived, `${time(new Date(o.arrived).toISOString())} here, by the clock of this page`]]
    for (const d of downstream.of(o.partition, o.at)) {
      behind.push(d.held ? [Date.parse(d.received), `${time(d.received)} downstream: ${d.sink} holds ${at}${d.first ? ", since then or before" : ""}`]
        : [Infinity, `not downstream yet: ${d.sink} holds entries up to ${d.through}`])
    }
    steps.push(...behind.sort((a, b) => a[0] - b[0]).map(b => b[1]))
  }
  byID("life").replaceChildren(...steps.map(text => {
    const li = document.createElement("li")
    li.textContent = text
    return li
  }))
}

let due = false

/** Draws the life of the order that is shown anew. */
function soon() {
  if (due || !shown) return
  due = true
  requestAnimationFrame(() => {
    due = false
    if (shown) showLife(shown)
  })
}

function openBook() {
  if (byID("book").hidden) return
  const symbol = blotter.row()?.data.symbol
  if (symbol) {
    input("book-symbol").value = symbol
    book.open(symbol)
  } else {
    input("book-symbol").focus()
  }
}

byID("book-form").addEventListener("submit", e => {
  e.preventDefault()
  book.open(input("book-symbol").value.trim())
})

function closeDetail() {
  shown = null
  stream.unwatch(executionsID)
  byID("detail").hidden = true
  byID("scroll").focus()
}

function toggleTheme() {
  const root = document.documentElement
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches
  root.dataset.theme = dark ? "light" : "dark"
  localStorage.setItem("theme", root.dataset.theme)
}
const kept = localStorage.getItem("theme")
if (kept === "dark" || kept === "light") document.documentElement.dataset.theme = kept

function toggleHold() {
  const held = byID("hold").getAttribute("aria-pressed") !== "true"
  byID("hold").setAttribute("aria-pressed", String(held))
  blotter.hold(held)
}

const help = /** @type {HTMLDialogElement} */ (byID("help"))
byID("theme").addEventListener("click", toggleTheme)
byID("hold").addEventListener("click", toggleHold)
byID("help-open").addEventListener("click", () => help.showModal())
byID("help-close").addEventListener("click", () => help.close())
const chooser = /** @type {HTMLDialogElement} */ (byID("columns"))
function chooseColumns() {
  blotter.chosen.list(byID("columns-list"))
  chooser.showModal()
}
byID("columns-open").addEventListener("click", chooseColumns)
byID("columns-close").addEventListener("click", () => chooser.close())
byID("detail-close").addEventListener("click", closeDetail)
input("filter").addEventListener("input", () => blotter.setFilter(input("filter").value))

/** @type {Record<string, () => void>} */
const keys = {
  "/": () => input("filter").focus(),
  "j": () => blotter.move(1), "ArrowDown": () => blotter.move(1),
  "k": () => blotter.move(-1), "ArrowUp": () => blotter.move(-1),
  "PageDown": () => blotter.move(blotter.page()), "PageUp": () => blotter.move(-blotter.page()),
  "Home": () => blotter.move(-Infinity), "End": () => blotter.move(Infinity),
  "Enter": () => blotter.select(blotter.selected, true),
  "Escape": closeDetail,
  "b": openBook,
  " ": toggleHold,
  "c": chooseColumns,
  "g": () => byID("grid").focus(),
  "t": toggleTheme,
  "?": () => help.showModal(),
}

document.addEventListener("keydown", e => {
  if (e.ctrlKey || e.metaKey || e.altKey || help.open || chooser.open || byID("main").hidden) return
  const at = /** @type {HTMLElement} */ (e.target)
  if (at === byID("filter")) {
    if (e.key === "Escape") {
      input("filter").value = ""
      blotter.setFilter("")
    }
    if (e.key === "Escape" || e.key === "Enter" || e.key === "ArrowDown") {
      e.preventDefault()
      byID("scroll").focus()
    }
    return
  }
  if (at === byID("book-symbol")) {
    if (e.key === "Escape") byID("scroll").focus()
    return
  }
  if (at === byID("grid")) { // it scrolls
    if (e.key === "Escape") byID("scroll").focus()
    if (e.key === "Escape" || /^(Arrow|Page|Home|End| )/.test(e.key)) return
  }
  if (at instanceof HTMLButtonElement && (e.key === "Enter" || e.key === " ")) return
  const act = keys[e.key]
  if (act) {
    e.preventDefault()
    act()
  }
})

input("token").focus()
