// Marks next to the scroll bar at the positions of the matches in the conversation. A click on one goes to its match; the
// buttons of the find bar do the same for the keyboard.
import { useMemo } from "react";
import type { MatchList } from "../../parts/find";

/** The number of positions that marks may have. */
const positions = 200;

interface TicksProps {
  list: MatchList;
  places: ReadonlyMap<string, number>;
  /** The index of the current match. */
  at: number;
  onGo: (at: number) => void;
}

export function FindTicks({ list, places, at, onGo }: TicksProps) {
  const ticks = useMemo(() => {
    const found = new Map<number, number>();
    for (const { key, index } of list.firsts()) {
      const position = Math.floor((places.get(key) ?? 0) * positions);
      if (!found.has(position)) found.set(position, index);
    }
    return [...found];
  }, [list, places]);
  const current = Math.floor((places.get(list.at(at)?.key ?? "") ?? -1) * positions);
  return (
    <div aria-hidden="true" data-ticks="" className="pointer-events-none absolute end-4 top-24 bottom-3 z-10 w-3">
      {ticks.map(([position, index]) => (
        <span
          key={position}
          data-tick={position}
          onClick={() => onGo(index)}
          style={{ top: `${(100 * (position + 0.5)) / positions}%` }}
          className="pointer-events-auto absolute inset-x-0 -mt-1 flex h-2 cursor-pointer items-center"
        >
          <span className={`w-full rounded-sm ${position === current ? "h-1 bg-accent" : "h-0.5 bg-warning"}`} />
        </span>
      ))}
    </div>
  );
}
