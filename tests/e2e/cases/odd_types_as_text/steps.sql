INSERT INTO odd SELECT id + 10, o, c, n, net, nets, mac, bits, more, cash, r, mr, h, p, pairs, v, pt, poly, l FROM odd;
