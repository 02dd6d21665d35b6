INSERT INTO numbers SELECT id + 10, full_scale, widest, wider, coarse, small, any_numeric FROM numbers;
INSERT INTO numbers (id, any_numeric) VALUES (20, 99999999999999999999.999999999999999999), (21, 100000000000000000000), (22, 1e-19), (23, 1.50000000000000000000000);
