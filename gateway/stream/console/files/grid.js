// @ts-check
// The map of the grid and the strip of delays, from the status of the gateway.
import {time} from "./columns.js"

/**
 * @typedef {{id: string, primary: boolean, inSync: boolean}} Member
 * @typedef {{partition: string, epoch: number, lineage: number, members: Member[], read: number, lag: number, orders: number, error?: string}} Partition
 * @typedef {{grid?: string, ready: boolean, clients: number, ordersPerSecond: number, delay?: {p50Ms: number, p99Ms: number, p999Ms: number}, partitions: Partition[]}} Status
 */

const points = 120
const changes = 12

/** @param {string} tag @param {string} [cls] @param {string} [text] */
export function make(tag, cls, text) {
  const el = document.createElement(tag)
  if (cls) el.className = cls
  if (text !== undefined) el.textContent = text
  return el
}

/** @param {string} id */
export const byID = id => /** @type {HTMLElement} */ (document.getElementById(id))

/** @param {string} member */
const podOf = member => member.split("/")[0]

/** Pods are named GRID-sSHARD-NUMBER. @param {Partition} p */
function shardOf(p) {
  const m = p.members.length ? /-s(\d+)-\d+$/.exec(podOf(p.members[0].id)) : null
  return m ? `shard ${m[1]}` : "no copy known"
}

/** @param {number} ms */
const milliseconds = ms => ms < 10 ? `${ms.toFixed(2)} ms` : ms < 10000 ? `${ms.toFixed(0)} ms` : `${(ms / 1000).toFixed(0)} s`

export class GridMap {
  /** @param {import("./downstream.js").Downstream} downstream */
  constructor(downstream) {
    this.downstream = downstream
    /** @type {Map<string, {primary: string, epoch: number, copies: string}>} */
    this.known = new Map()
    /** @type {number[]} */
    this.p99 = []
  }

  /** @param {Status} s */
  show(s) {
    byID("strip").hidden = byID("map").hidden = false
    byID("map-none").hidden = true
    byID("grid-name").textContent = s.grid || ""
    byID("rate").textContent = s.ordersPerSecond.toFixed(s.ordersPerSecond < 10 ? 1 : 0)
    byID("p50").textContent = s.delay ? milliseconds(s.delay.p50Ms) : "–"
    byID("p99").textContent = s.delay ? milliseconds(s.delay.p99Ms) : "–"
    this.spark(s.delay ? s.delay.p99Ms : 0)
    for (const p of s.partitions) this.changed(p)
    this.draw(s.partitions)
  }

  /** @param {number} p99 */
  spark(p99) {
    this.p99.push(p99)
    if (this.p99.length > points) this.p99.shift()
    const top = Math.max(...this.p99, 0.001)
    const line = this.p99.map((v, i) => `${i + points - this.p99.length},${(23 - 22 * v / top).toFixed(1)}`).join(" ")
    byID("spark").querySelector("polyline")?.setAttribute("points", line)
  }

  /** @param {Partition} p */
  changed(p) {
    const now = {primary: podOf(p.members.find(m => m.primary)?.id || ""), epoch: p.epoch, copies: p.members.filter(m => m.inSync).map(m => podOf(m.id)).sort().join(", ")}
    const before = this.known.get(p.partition)
    this.known.set(p.partition, now)
    if (!before || before.epoch === now.epoch) return
    let text = `${p.partition}: epoch ${now.epoch}`
    if (before.primary !== now.primary) text += `, primary ${before.primary || "none"} → ${now.primary || "none"}`
    if (before.copies !== now.copies) text += `, in sync ${now.copies || "none"}`
    const list = byID("events")
    list.prepend(make("li", "", `${new Date().toLocaleTimeString("en-GB")} ${text}`))
    while (list.childElementCount > changes) list.lastElementChild?.remove()
  }

  /** @param {Partition[]} partitions */
  draw(partitions) {
    /** @type {Map<string, Partition[]>} */
    const shards = new Map()
    for (const p of partitions) shards.set(shardOf(p), [...(shards.get(shardOf(p)) || []), p])
    byID("shards").replaceChildren(...[...shards].sort().map(([name, parts]) => {
      const shard = make("div", "shard")
      shard.append(make("h3", "", name), ...parts.map(p => card(p, this.downstream.latest(p.partition))))
      return shard
    }))
  }
}

/** @param {Partition} p @param {{sink: string, through: string, received: string}[]} sinks */
function card(p, sinks) {
  const el = make("div", p.error ? "part failing" : "part")
  const line = make("p")
  line.append(make("strong", "", p.partition), make("span", "", `epoch ${p.epoch}`), make("span", "", `entry ${p.read}`), make("span", "", p.lag ? `${p.lag} behind` : "no lag"))
  const list = make("ul")
  for (const m of p.members) list.append(make("li", (m.primary ? "primary " : "") + (m.inSync ? "sync" : ""), podOf(m.id) + (m.primary ? " primary" : m.inSync ? "" : " catching up")))
  el.append(line, list)
  for (const s of sinks) el.append(make("p", "sink", `${s.sink} holds up to ${s.through}, since ${time(s.received)}`))
  if (p.error) el.append(make("p", "error", p.error))
  return el
}
