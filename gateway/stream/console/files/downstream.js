// @ts-check
// What the sinks of the grid hold: each position is an entry of the log, with its time.

/**
 * A sink holds all entries of a partition up to through, and the log says so at a time.
 * @typedef {{through: bigint, received: string}} Position
 * @typedef {{sink: string, held: boolean, first: boolean, received: string, through: string}} Held
 */

const most = 500 // positions of a sink in a partition

/** The sink of the nodes has no name. @param {string} sink */
const named = sink => sink || "the nodes' sink"

export class Downstream {
  /** @param {() => void} onChange */
  constructor(onChange) {
    this.onChange = onChange
    /** @type {Map<number, Map<string, Position[]>>} by partition and sink, oldest first */
    this.known = new Map()
  }

  clear() {
    this.known.clear()
    this.onChange()
  }

  /** @param {import("./stream.js").Message} m */
  add(m) {
    const sinks = this.known.get(m.partition) || new Map()
    this.known.set(m.partition, sinks)
    if (m.data.gone) {
      sinks.delete(m.data.sink)
    } else {
      const list = sinks.get(m.data.sink) || []
      sinks.set(m.data.sink, list)
      list.push({through: BigInt(m.data.through), received: m.data.received})
      if (list.length > most) list.shift()
    }
    this.onChange()
  }

  /** Which sinks hold an entry, and when the log said so first; first: it may have before. @param {number} partition @param {string} at @returns {Held[]} */
  of(partition, at) {
    const seq = BigInt(at.split(".")[0])
    return [...(this.known.get(partition) || [])].sort().map(([sink, list]) => {
      const i = list.findIndex(p => p.through >= seq)
      const p = list[i < 0 ? list.length - 1 : i]
      return {sink: named(sink), held: i >= 0, first: i === 0, received: p.received, through: String(p.through)}
    })
  }

  /** The latest position of each sink. @param {string} partition its name @returns {{sink: string, through: string, received: string}[]} */
  latest(partition) {
    return [...(this.known.get(Number(partition.slice(1))) || [])].sort().map(([sink, list]) => {
      const p = list[list.length - 1]
      return {sink: named(sink), through: String(p.through), received: p.received}
    })
  }
}
