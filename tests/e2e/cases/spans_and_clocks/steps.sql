INSERT INTO spans SELECT id + 10, span, spans, clock, zoned, period FROM spans;
INSERT INTO spans (id, span) VALUES (20, '-1 mon +3 days -04:00:00.5'), (21, '178000000 years');
