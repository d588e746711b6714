// Package statement reads a question from text: one select statement of a small subset of SQL.
//
//	select COLUMN|count(*)|sum(C)|min(C)|max(C) [as NAME], … | * from orders
//	[where CONDITION] [group by COLUMN, …] [order by COLUMN|AGGREGATE|POSITION [asc|desc], …] [limit N]
//
// A condition has and, or, not, =, <>, <, <=, >, >=, between, in, like 'text%', is null. Comparisons with an absent value
// are not true, nor are their negations, as in SQL. Whatever else is written is refused with its position and what is
// allowed there.
package statement
