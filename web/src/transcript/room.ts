// What every row may need of the room around it.
import { createContext, use } from "react";
import type { Scroll } from "./use-scroll";

export interface RoomContext {
  /** The conversation. */
  id: string;
  /** A turn is live: versions can be neither made nor changed. */
  busy: boolean;
  scroll: Pick<Scroll, "hold">;
}

export const Room = createContext<RoomContext>({ id: "", busy: false, scroll: { hold: () => {} } });

export const useRoom = () => use(Room);
