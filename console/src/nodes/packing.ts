// How full a node is: what it has, and which project holds how much of it.
import type { Allocation, Inventory } from "../api/types";

export interface Share {
  allocation: Allocation;
  amount: number;
}

export interface Packed {
  what: string;
  unit: string;
  total: number;
  shares: Share[];
  free: number;
}

/** While an allocation is in one of these, its part of the node is taken. */
export const HELD: Allocation["status"][] = ["provisioning", "active", "releasing", "release_failed"];

export function packing(inventory: Inventory, allocations: Allocation[]): Packed[] {
  const held = allocations.filter((allocation) => HELD.includes(allocation.status));
  const packed = (what: string, unit: string, total: number, amount: (one: Allocation) => number): Packed => {
    const shares = held
      .map((allocation) => ({ allocation, amount: amount(allocation) }))
      .filter((one) => one.amount > 0);
    const taken = shares.reduce((sum, share) => sum + share.amount, 0);
    return { what, unit, total, shares, free: Math.max(0, total - taken) };
  };
  return [
    packed("GPUs", "", inventory.gpus?.length ?? 0, (one) => one.gpu_count),
    packed("CPU", "cores", inventory.cpu_cores, (one) => one.cpu_cores),
    packed("Memory", "GiB", inventory.memory_gib, (one) => one.memory_gib),
  ];
}

/** A node is silent when nothing was heard of it for several of its beats. */
export const SILENT_MS = 45_000;
