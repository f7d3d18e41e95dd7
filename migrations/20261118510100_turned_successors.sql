-- A run that was cancelled while it waited to take a target over is no successor any more: it never takes over, and the
-- next who asks does. Those that were cancelled before this release give their place up now.

update engine.run set succeeds_holder = false where succeeds_holder and unwinding;
