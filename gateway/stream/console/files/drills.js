// @ts-check
// Drills as they happen: what their recorders publish, a message a second of each.
import {time} from "./columns.js"
import {byID, make} from "./grid.js"

/**
 * @typedef {{index: number, what: string, from: string, injected?: string, recovered?: string, served?: string, redundant?: string, over: boolean, failed?: string, witness?: string, outageMs: number}} Step
 * @typedef {{drill: string, phase: string, error?: string, now: string, created: number, acknowledged: number, rejected: number, unknown: number,
 *   redundant: boolean, missing?: string, verdict?: string, steps: Step[]}} Drill
 */

const silence = 5000 // ms after which a recorder that says nothing may be gone
const most = 8 // drills

export class Drills {
  constructor() {
    /** @type {Map<string, {drill: Drill, heard: number}>} by topic, the one heard last at the end */
    this.known = new Map()
    setInterval(() => this.draw(), 1000)
  }

  clear() {
    this.known.clear()
    this.draw()
  }

  /** @param {import("./stream.js").Message} m */
  add(m) {
    if (!m.data || !Array.isArray(m.data.steps)) return // anything may be published
    const before = this.known.get(m.topic)
    if (!before && this.known.size === most) this.known.delete([...this.known.keys()][0])
    this.known.set(m.topic, {drill: m.data, heard: Date.now()})
    this.draw()
  }

  draw() {
    byID("drills").hidden = this.known.size === 0
    byID("drills-list").replaceChildren(...[...this.known.values()].map(({drill, heard}) => card(drill, Date.now() - heard)))
  }
}

/** @param {Drill} d @param {number} quiet ms since it was heard of */
function card(d, quiet) {
  const ended = d.phase === "Done" || d.phase === "Failed"
  const el = make("div", d.error || d.phase === "Failed" || d.verdict === "Violated" ? "part failing" : "part")
  const line = make("p")
  line.append(make("strong", "", String(d.drill)), make("span", "", d.verdict ? `${d.phase}: ${d.verdict}` : String(d.phase)))
  el.append(line, make("p", "", `${d.acknowledged} of ${d.created} orders acknowledged` + (d.rejected ? `, ${d.rejected} rejected` : "") + (d.unknown ? `, ${d.unknown} unknown` : "")))
  if (!ended) el.append(make("p", d.redundant ? "" : "error", d.redundant ? "all copies in sync" : `not redundant: ${d.missing || "not known yet"}`))
  if (d.error) el.append(make("p", "error", String(d.error)))
  if (!ended && quiet > silence) el.append(make("p", "error", `its recorder was not heard for ${Math.round(quiet / 1000)} s`))
  const list = make("ol")
  for (const s of d.steps.slice(-most).reverse()) list.append(make("li", s.failed ? "error" : s.over ? "" : "now", stepText(s)))
  el.append(list)
  return el
}

/** @param {Step} s */
function stepText(s) {
  const parts = [`${time(s.from)} ${s.what}`]
  if (s.failed) parts.push(`not carried out: ${s.failed}`)
  for (const [name, at] of [["in place", s.injected], ["taken back", s.recovered], ["served", s.served], ["redundant", s.redundant]]) {
    if (at) parts.push(`${name} ${time(at)}`)
  }
  if (s.injected && s.witness) parts.push(`witness ${s.witness}`)
  if (s.over && !s.failed) parts.push(`outage ${s.outageMs} ms`)
  return parts.join(", ")
}
