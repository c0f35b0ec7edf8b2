-- The segments of a range of depths. They are disjoint, so that their ends are in the order of their beginnings, and those
-- of the range follow the first that ends within it.
create index branch_segments_depth on branch_segments (account_id, branch_id, to_depth);
