import { useQuery } from "@tanstack/react-query";
import { approvalsQuery } from "../api/queries";

/** Returns the calls that wait for the user's approval. */
export const useApprovals = () => useQuery(approvalsQuery).data;
